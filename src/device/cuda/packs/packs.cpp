// Packs on a GPU: the host plans them, sorts the works by kind and uploads tables. Each kind has a kernel.
#include <algorithm>
#include <tuple>
#include <vector>

#include "device/cuda/stream.hpp"
#include "device/packs/pack_plan.hpp"

namespace penstock::device {
namespace {

constexpr std::size_t kWorks = 1024;  // at most, in one table
constexpr std::size_t kPackRingBytes = 2 * kWorks * (sizeof(PackWork) + 2 * sizeof(std::uint64_t));

// A table consists of works, then for each launch the first units of its works and their sum.
std::size_t table_bytes(std::size_t works) { return works * (sizeof(PackWork) + 2 * sizeof(std::uint64_t)); }

bool comes_before(const PackWork& a, const PackWork& b) {
    return std::tuple(a.kind.to, a.kind.from, a.kind.piece) < std::tuple(b.kind.to, b.kind.from, b.kind.piece);
}

// Writes the works and their units into a table, and returns what to launch, with addresses in that table.
std::vector<PackLaunch> write_table(std::span<const PackWork> sorted, std::byte* table) {
    auto* works = reinterpret_cast<PackWork*>(table);
    auto* units = reinterpret_cast<std::uint64_t*>(works + sorted.size());
    std::vector<PackLaunch> launches;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        works[i] = sorted[i];
        if (launches.empty() || !(launches.back().kind == sorted[i].kind)) {
            launches.push_back({sorted[i].kind, units, works + i, 0, 0});
            *units++ = 0;
        }
        PackLaunch& launch = launches.back();
        ++launch.count;
        *units++ = launch.units += units_of(sorted[i]);
    }
    return launches;
}

}  // namespace

void CudaStream::pack_works(std::span<const PackWork> sorted) {
    std::byte* table = pack_ring_->next(table_bytes(sorted.size()));
    std::vector<PackLaunch> launches = write_table(sorted, table);
    pack_ring_->upload(0, sorted.size() * sizeof(PackWork) + (sorted.size() + launches.size()) * sizeof(std::uint64_t),
                       stream_);
    for (PackLaunch& launch : launches) {
        launch.first_units = pack_ring_->in_memory(launch.first_units);
        launch.works = pack_ring_->in_memory(launch.works);
        cuda_check(launch_packs(launch, facts_.processors, stream_), "launch of packs");
    }
    pack_ring_->used(stream_);
}

void CudaStream::pack(std::span<const Pack> packs) {
    std::vector<PackWork> works;
    for (const Pack& pack : simplified(packs)) plan_pack(pack, works);
    if (works.empty()) return;
    std::stable_sort(works.begin(), works.end(), comes_before);
    const ScopedCudaDevice scope(facts_.index);
    if (!pack_ring_) pack_ring_ = std::make_unique<TableRing>(facts_.index, kPackRingBytes);
    for (std::size_t done = 0; done < works.size(); done += kWorks) {
        pack_works(std::span(works).subspan(done, std::min(kWorks, works.size() - done)));
    }
}

}  // namespace penstock::device
