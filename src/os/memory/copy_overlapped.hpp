// Copies several small pieces at the same time. A core that copies pieces from random pages one after another waits for
// the first cache lines of each. If it copies a few lines of four pieces in turn, more memory accesses overlap.
//
// Ensures: the result is the same as if each piece had been copied alone, in any order.
#pragma once

#include <cstddef>
#include <span>

namespace penstock::os {

struct HostCopy {
    void* to;
    const void* from;
    std::size_t bytes;
};

inline constexpr std::size_t kOverlap = 4;

// Returns how many pieces, from the front, are best copied together: kOverlap or one.
std::size_t overlap_count(std::span<const HostCopy> pieces) noexcept;

// Requires: `pieces` is as long as `beside` returned. Prefetches the first lines of `next`, the pieces that follow.
void copy_overlapped(std::span<const HostCopy> pieces, std::span<const HostCopy> next) noexcept;

}  // namespace penstock::os
