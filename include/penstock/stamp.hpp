// The stamped pattern that proves data went where it should: every 8-byte word of a file says where it belongs.
//
// Word w (bytes 8w..8w+7, little endian) of a file stamped with `seed` is stamp_word(seed, w): a mix with no fixed
// point in common use, so shifted, swapped, stale or missing pieces all show. Single source for host and device code.
#pragma once

#include <cstdint>

#include "penstock/host_device.hpp"

namespace penstock {

// splitmix64 finaliser over seed and index (Steele, Lea, Flood 2014).
PENSTOCK_HOST_DEVICE inline std::uint64_t stamp_word(std::uint64_t seed, std::uint64_t word_index) {
    std::uint64_t z = seed + 0x9E3779B97F4A7C15ull * (word_index + 1);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

// Byte at file offset `offset` of the pattern.
PENSTOCK_HOST_DEVICE inline unsigned char stamp_byte(std::uint64_t seed, std::uint64_t offset) {
    return static_cast<unsigned char>(stamp_word(seed, offset / 8) >> (8 * (offset % 8)));
}

}  // namespace penstock
