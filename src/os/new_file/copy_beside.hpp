// Copies of small pieces side by side. Of pages that lie anywhere in memory, a core that copies one after another waits
// for the first lines of each; where it copies a few lines of four in turn, more of them are on their way at a time.
// What must stay true: bytes end up as if each piece had been copied by itself, in any order.
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

// How many of these are best copied side by side, those at the front: kBeside, or one.
std::size_t beside(std::span<const CopyPiece> pieces) noexcept;

// Copies as many pieces as `beside` said. `next` are those that come after them: their first lines are asked for early.
void copy_beside(std::span<const CopyPiece> pieces, std::span<const CopyPiece> next) noexcept;

}  // namespace penstock::os
