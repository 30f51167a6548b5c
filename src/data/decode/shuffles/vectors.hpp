// Vectors of 16 bytes, and their weaving: what compilers turn into one instruction of x86 and of ARM each.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace penstock::data {

inline constexpr std::size_t kVectorBytes = 16;
using Vector = std::uint8_t __attribute__((vector_size(kVectorBytes)));

#if defined(__clang__) || __GNUC__ >= 12
inline Vector low_halves(Vector a, Vector b) {
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
inline Vector high_halves(Vector a, Vector b) {
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}
#else
inline Vector low_halves(Vector a, Vector b) {
    return __builtin_shuffle(a, b, Vector{0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23});
}
inline Vector high_halves(Vector a, Vector b) {
    return __builtin_shuffle(a, b, Vector{8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31});
}
#endif

// A round puts the bytes of the first half of the vectors to even places of them all, those of the second half to odd
// ones. So it turns the place of a byte, a number of 4 + log2(kPlanes) bits, by one bit.
template <std::size_t kPlanes, std::size_t kRounds>
inline void turn(Vector (&planes)[kPlanes]) {
#pragma GCC unroll 4
    for (std::size_t round = 0; round < kRounds; ++round) {
        Vector woven[kPlanes];
#pragma GCC unroll 16
        for (std::size_t k = 0; k < kPlanes / 2; ++k) {
            woven[2 * k] = low_halves(planes[k], planes[k + kPlanes / 2]);
            woven[2 * k + 1] = high_halves(planes[k], planes[k + kPlanes / 2]);
        }
#pragma GCC unroll 16
        for (std::size_t k = 0; k < kPlanes; ++k) planes[k] = woven[k];
    }
}

// Byte i of vector k goes to place i * kPlanes + k of them all.
template <std::size_t kPlanes>
inline void weave(Vector (&planes)[kPlanes]) {
    turn<kPlanes, std::bit_width(kPlanes) - 1>(planes);
}

// The other way: the rounds that are left until all is where it was.
template <std::size_t kPlanes>
inline void unweave(Vector (&planes)[kPlanes]) {
    turn<kPlanes, std::bit_width(kVectorBytes) - 1>(planes);
}

}  // namespace penstock::data
