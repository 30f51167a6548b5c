// See chunk_sums.hpp.
#include "snapshot/chunk_sums.hpp"

#include <memory>
#include <string>

#include "context/crew.hpp"
#include "data/cores/on_cores.hpp"
#include "data/decode/checksums/sums.hpp"
#include "penstock/checksum.hpp"

namespace penstock::snapshot {
namespace {

class ChunkSummer final : public data::ItemWorker {
  public:
    ChunkSummer(std::span<const ChunkBegin> chunks, std::vector<std::uint32_t>& sums) : chunks_(chunks), sums_(sums) {}
    std::string take(std::size_t item) override {
        sums_[item] = data::fletcher32({chunks_[item].data, chunks_[item].bytes});
        return {};
    }

  private:
    std::span<const ChunkBegin> chunks_;
    std::vector<std::uint32_t>& sums_;
};

std::vector<std::uint32_t> sums_on_cores(const Context& context, std::span<const ChunkBegin> chunks) {
    std::vector<std::uint32_t> sums(chunks.size());
    if (chunks.empty()) return sums;
    data::on_cores({chunks.size(), chunks[0].bytes, kMiB}, [&] { return std::make_unique<ChunkSummer>(chunks, sums); },
                   {.crew = &context::crew_of(context)});
    return sums;
}

std::vector<std::uint32_t> sums_on_device(const Context& context, std::span<const ChunkBegin> chunks) {
    std::vector<ChecksumRange> ranges;
    for (const ChunkBegin& chunk : chunks) ranges.push_back({chunk.data, chunk.bytes});
    return context.checksums(ChecksumKind::fletcher32, ranges);
}

}  // namespace

// Zeros leave the lower sum as it is, and add it to the upper one once for each word. A sum that is not 0 never becomes
// 0: a multiple of 65535 stays 65535.
std::uint32_t fletcher_with_zeros(std::uint32_t sum, std::uint64_t bytes, std::uint64_t with_zeros) {
    constexpr std::uint64_t kModulus = 65535;
    const std::uint64_t low = sum & 0xffff, high = sum >> 16;
    const std::uint64_t words = (with_zeros + 1) / 2 - (bytes + 1) / 2;
    if (low == 0 || words == 0) return sum;
    const std::uint64_t more = (high + words % kModulus * low) % kModulus;
    return static_cast<std::uint32_t>((more == 0 ? kModulus : more) << 16 | low);
}

std::vector<std::uint32_t> fletcher_sums(const Context& context, std::span<const ChunkBegin> chunks,
                                         MemoryKind memory) {
    std::vector<std::uint32_t> sums =
        memory == MemoryKind::device ? sums_on_device(context, chunks) : sums_on_cores(context, chunks);
    for (std::size_t i = 0; i < chunks.size(); ++i)
        sums[i] = fletcher_with_zeros(sums[i], chunks[i].bytes, chunks[i].chunk_bytes);
    return sums;
}

}  // namespace penstock::snapshot
