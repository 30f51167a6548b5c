// The transposition of bitshuffle and of blosc: the lowest bits of the first bytes of all elements, then the second
// lowest bits of the first bytes, and so on.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace penstock::data {

// Puts rows of bits together to elements. Requires: both spans are equally long and do not overlap, a multiple of eight
// elements of `item_bytes`, which is not 0. `planes` is memory for as many bytes, and is resized.
void bit_unshuffle(std::span<const std::byte> rows, std::span<std::byte> elements, std::size_t item_bytes,
                   std::vector<std::byte>& planes);

}  // namespace penstock::data
