// What the CPU does of a CRC-32 by itself: it multiplies polynomials.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::base {

inline constexpr std::size_t kFoldedBytes = 16;
inline constexpr std::size_t kLeastToFold = 64;  // and what is folded is a multiple of kFoldedBytes

bool can_fold() noexcept;
// Puts into `folded` bytes that have the remainder of `bytes` behind others with the remainder `before`.
// Requires: can_fold(), and at least kLeastToFold bytes.
void fold(std::uint32_t before, std::span<const std::byte> bytes, std::span<std::byte, kFoldedBytes> folded) noexcept;

}  // namespace penstock::base
