// See block_sums.hpp.
#include "restart/block_sums.hpp"

#include <algorithm>

#include "base/crc32/crc32.hpp"

namespace penstock::restart {
namespace {

// The runs cut at the borders of blocks.
std::vector<RunOfField> cut_at_blocks(std::span<const RunOfField> runs) {
    std::vector<RunOfField> parts;
    for (RunOfField left : runs) {
        while (left.bytes != 0) {
            const std::uint64_t bytes = std::min(left.bytes, kSummedBytes - left.field_offset % kSummedBytes);
            parts.push_back({left.field_offset, left.memory_offset, bytes});
            left = {left.field_offset + bytes, left.memory_offset + bytes, left.bytes - bytes};
        }
    }
    return parts;
}

}  // namespace

std::uint64_t blocks_of(std::uint64_t bytes) noexcept { return (bytes + kSummedBytes - 1) / kSummedBytes; }

std::uint64_t BlockSums::block_bytes(std::uint64_t block) const noexcept {
    return std::min(kSummedBytes, bytes_ - block * kSummedBytes);
}

void BlockSums::add(const Context& context, std::span<const RunOfField> runs, const MemoryView& memory) {
    const std::vector<RunOfField> parts = cut_at_blocks(runs);
    const auto* base = static_cast<const std::byte*>(memory.data);
    std::vector<std::uint32_t> device;
    if (memory.kind != MemoryKind::system) {
        std::vector<ChecksumRange> ranges;
        for (const RunOfField& part : parts) ranges.push_back({base + part.memory_offset, part.bytes});
        device = context.checksums(ChecksumKind::crc32, ranges);
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const RunOfField& part = parts[i];
        const std::uint64_t block = part.field_offset / kSummedBytes;
        const std::uint64_t end = part.field_offset - block * kSummedBytes + part.bytes;
        const std::uint32_t remainder = memory.kind == MemoryKind::system
                                            ? base::crc32_remainder(0, {base + part.memory_offset, part.bytes})
                                            : base::crc32_to_remainder(device[i], part.bytes);
        sums_[block] ^= base::crc32_followed(remainder, block_bytes(block) - end);
    }
}

std::vector<std::uint64_t> touched_blocks(std::span<const RunOfField> runs) {
    std::vector<std::uint64_t> blocks;
    for (const RunOfField& run : runs) {
        const std::uint64_t last = (run.field_offset + run.bytes - 1) / kSummedBytes;
        std::uint64_t block = run.field_offset / kSummedBytes;
        if (!blocks.empty()) block = std::max(block, blocks.back() + 1);
        for (; block <= last; ++block) blocks.push_back(block);
    }
    return blocks;
}

std::vector<RunOfField> gaps_of(std::span<const RunOfField> runs, std::uint64_t field_bytes) {
    std::vector<RunOfField> gaps;
    std::size_t next = 0;
    std::uint64_t memory = 0;
    for (const std::uint64_t block : touched_blocks(runs)) {
        std::uint64_t at = block * kSummedBytes;
        const std::uint64_t end = std::min(at + kSummedBytes, field_bytes);
        const auto leave = [&](std::uint64_t up_to) {
            if (at >= up_to) return;
            gaps.push_back({at, memory, up_to - at});
            memory += up_to - at;
        };
        for (; next < runs.size() && runs[next].field_offset < end; ++next) {
            const std::uint64_t run_end = runs[next].field_offset + runs[next].bytes;
            leave(runs[next].field_offset);
            at = std::max(at, std::min(run_end, end));
            if (run_end > end) break;
        }
        leave(end);
    }
    return gaps;
}

}  // namespace penstock::restart
