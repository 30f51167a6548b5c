// See folding.hpp. Four lanes of 16 bytes are multiplied over the 64 bytes that follow them, then over each other. The
// factors are powers of x modulo the polynomial, reflected (Gopal and others, "Fast CRC Computation for Generic
// Polynomials Using PCLMULQDQ Instruction", Intel, 2009).
#include <immintrin.h>

#include "base/crc32/folding.hpp"

#define PENSTOCK_FOLDS __attribute__((target("pclmul,sse2")))

namespace penstock::base {
namespace {

PENSTOCK_FOLDS __m128i load(const std::byte* at) noexcept {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

// What lies `factors` further on, with what lies there.
PENSTOCK_FOLDS __m128i folded_onto(__m128i lane, __m128i factors, __m128i there) noexcept {
    const __m128i low = _mm_clmulepi64_si128(lane, factors, 0x00), high = _mm_clmulepi64_si128(lane, factors, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), there);
}

}  // namespace

bool can_fold() noexcept { return __builtin_cpu_supports("pclmul") != 0; }

PENSTOCK_FOLDS void fold(std::uint32_t before, std::span<const std::byte> bytes,
                         std::span<std::byte, kFoldedBytes> folded) noexcept {
    const __m128i by_64 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4), by_16 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    const std::byte* at = bytes.data();
    const std::byte* const end = at + bytes.size();
    __m128i lanes[4] = {load(at), load(at + 16), load(at + 32), load(at + 48)};
    lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128(static_cast<int>(before)));
    for (at += 64; end - at >= 64; at += 64) {
        for (int i = 0; i < 4; ++i) lanes[i] = folded_onto(lanes[i], by_64, load(at + 16 * i));
    }
    __m128i all = lanes[0];
    for (int i = 1; i < 4; ++i) all = folded_onto(all, by_16, lanes[i]);
    for (; end - at >= 16; at += 16) all = folded_onto(all, by_16, load(at));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(folded.data()), all);
}

}  // namespace penstock::base
