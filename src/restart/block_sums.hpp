// BlockSums: what a process knows of the checksums of a field, whose bytes are cut into blocks of one size.
//
// The sum of a block is linear (base/crc32): each process adds what it has of it, in any order, and the sums of all
// processes joined by exclusive or are those of the blocks. So neither writers nor readers need to meet at the borders
// of blocks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "penstock/context.hpp"
#include "restart/boxes.hpp"

namespace penstock::restart {

inline constexpr std::uint64_t kSummedBytes = kMiB;

std::uint64_t blocks_of(std::uint64_t bytes) noexcept;

class BlockSums {
  public:
    // `sums`: one for each block of the field; what is there is added to.
    BlockSums(std::uint64_t field_bytes, std::span<std::uint32_t> sums) : bytes_(field_bytes), sums_(sums) {}
    // Runs of the field that lie in `memory`. The device sums what it can address; the calling thread sums `system`.
    void add(const Context& context, std::span<const RunOfField> runs, const MemoryView& memory);
    std::uint64_t block_bytes(std::uint64_t block) const noexcept;

  private:
    std::uint64_t bytes_;
    std::span<std::uint32_t> sums_;
};

// Numbers of the blocks that the runs touch, in order, and the runs of these blocks that lie between them.
std::vector<std::uint64_t> touched_blocks(std::span<const RunOfField> runs);
std::vector<RunOfField> gaps_of(std::span<const RunOfField> runs, std::uint64_t field_bytes);

}  // namespace penstock::restart
