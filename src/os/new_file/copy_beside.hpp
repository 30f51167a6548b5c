// Copies several small pieces at the same time. A core that copies pieces from random pages one after another waits for
// the first cache lines of each. If it copies a few lines of four pieces in turn, more memory accesses overlap.
//
// Ensures: the result is the same as if each piece had been copied alone, in any order.
#pragma once

#include <cstddef>
#include <span>

namespace penstock::os {

struct CopyPiece {
    void* to;
    const void* from;
    std::size_t bytes;
};

inline constexpr std::size_t kBeside = 4;

// Returns how many pieces, from the front, are best copied together: kBeside or one.
std::size_t beside(std::span<const CopyPiece> pieces) noexcept;

// Requires: `pieces` is as long as `beside` returned. Prefetches the first lines of `next`, the pieces that follow.
void copy_beside(std::span<const CopyPiece> pieces, std::span<const CopyPiece> next) noexcept;

}  // namespace penstock::os
