// Checksums on a GPU: the host uploads tables of segments, one kernel sums each table, and the host joins the sums.
#include <algorithm>
#include <vector>

#include "device/checksum_lanes.hpp"
#include "device/cuda/stream.hpp"

namespace penstock::device {

struct ChecksumTable {
    static constexpr std::size_t kSegments = 8192;  // 2 GiB of whole segments
    ChecksumSegment segments[kSegments];
    std::uint64_t sums[kSegments];
};

namespace {

auto launcher_of(ChecksumKind kind) {
    switch (kind) {
        case ChecksumKind::adler32: return &launch_sum_adler;
        case ChecksumKind::fletcher32: return &launch_sum_fletcher;
        case ChecksumKind::crc32: break;
    }
    return &launch_sum_crc;
}

}  // namespace

ChecksumTables::ChecksumTables() : pinned(allocate_pinned<ChecksumTable>(1)) {
    void* allocated = nullptr;
    cuda_check(cudaMalloc(&allocated, sizeof(ChecksumTable)), "cudaMalloc");
    memory.reset(static_cast<ChecksumTable*>(allocated));
}

std::vector<std::uint64_t> CudaStream::sum_segments(ChecksumKind kind, std::span<const ChecksumSegment> segments) {
    if (!checksums_) checksums_ = std::make_unique<ChecksumTables>();
    ChecksumTable &pinned = *checksums_->pinned, *memory = checksums_->memory.get();
    std::vector<std::uint64_t> sums;
    sums.reserve(segments.size());
    while (!segments.empty()) {
        const std::size_t count = std::min(segments.size(), ChecksumTable::kSegments);
        std::copy_n(segments.begin(), count, pinned.segments);
        cuda_check(cudaMemcpyAsync(memory->segments, pinned.segments, count * sizeof(ChecksumSegment),
                                   cudaMemcpyHostToDevice, stream_),
                   "cudaMemcpyAsync");
        const ChecksumLaunch launch{memory->segments, memory->sums, static_cast<std::uint32_t>(count)};
        cuda_check(launcher_of(kind)(launch, facts_.processors, stream_), "launch of a checksum");
        cuda_check(cudaMemcpyAsync(pinned.sums, memory->sums, count * sizeof(std::uint64_t), cudaMemcpyDeviceToHost,
                                   stream_),
                   "cudaMemcpyAsync");
        synchronize();
        sums.insert(sums.end(), pinned.sums, pinned.sums + count);
        segments = segments.subspan(count);
    }
    return sums;
}

std::vector<std::uint32_t> CudaStream::checksums(ChecksumKind kind, std::span<const ChecksumRange> ranges) {
    const ScopedCudaDevice scope(facts_.index);
    std::vector<ChecksumSegment> segments;
    for (const ChecksumRange& range : ranges) {
        for (std::uint64_t at = 0; at < range.bytes; at += kChecksumSegment) {
            segments.push_back({static_cast<const unsigned char*>(range.memory) + at,
                                std::min(range.bytes - at, kChecksumSegment)});
        }
    }
    const std::vector<std::uint64_t> sums = sum_segments(kind, segments);
    std::vector<std::uint32_t> found;
    found.reserve(ranges.size());
    std::size_t next = 0;
    for (const ChecksumRange& range : ranges) {
        const std::size_t count = (range.bytes + kChecksumSegment - 1) / kChecksumSegment;
        found.push_back(join_segments(kind, std::span(sums).subspan(next, count), range.bytes));
        next += count;
    }
    return found;
}

}  // namespace penstock::device
