// The shuffle of HDF5, blosc and numcodecs: the first bytes of all elements, then the second bytes, and so on.
#pragma once

#include <cstddef>
#include <span>

namespace penstock::data {

// Puts planes of bytes together to elements of `item_bytes`, which is not 0. Bytes behind the last whole element stay
// as they are. Requires: both spans are equally long and do not overlap.
void unshuffle(std::span<const std::byte> planes, std::span<std::byte> elements, std::size_t item_bytes) noexcept;

// The other way. Requires: the same.
void shuffle(std::span<const std::byte> elements, std::span<std::byte> planes, std::size_t item_bytes) noexcept;

}  // namespace penstock::data
