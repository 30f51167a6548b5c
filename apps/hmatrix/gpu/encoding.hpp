// How a kernel reads the two encodings: words of a column, and the numbers in a word.
#pragma once

#include <cstdint>
#include <cstring>

#include "hmatrix/gpu/leaf.hpp"
#include "hmatrix/gpu/team.hpp"

namespace penstock::hmatrix::gpu {

struct Digits {
    using Real = float;
    using Word = std::uint32_t;
    static constexpr int kNumbers = 4;  // in a word
    static constexpr bool kScaled = true;

    // The word's signed bytes. A byte with its sign bit turned is a whole number from 0 on; behind the exponent of 2^23
    // it is a float without any conversion.
    static PENSTOCK_BOTH void numbers(Word word, Real (&out)[kNumbers]) {
#if defined(__CUDA_ARCH__)
        const Word biased = word ^ 0x80808080u;
        out[0] = __uint_as_float(__byte_perm(biased, 0x4b000000u, 0x7440)) - 8388736.0f;
        out[1] = __uint_as_float(__byte_perm(biased, 0x4b000000u, 0x7441)) - 8388736.0f;
        out[2] = __uint_as_float(__byte_perm(biased, 0x4b000000u, 0x7442)) - 8388736.0f;
        out[3] = __uint_as_float(__byte_perm(biased, 0x4b000000u, 0x7443)) - 8388736.0f;
#else
        for (int i = 0; i < kNumbers; ++i) out[i] = static_cast<Real>(static_cast<std::int8_t>(word >> (8 * i)));
#endif
    }

    // x of one word, which begins at a multiple of 16 bytes.
    static PENSTOCK_BOTH void load(const Real* from, Real (&out)[kNumbers]) {
#if defined(__CUDA_ARCH__)
        const float4 all = *reinterpret_cast<const float4*>(from);
        out[0] = all.x, out[1] = all.y, out[2] = all.z, out[3] = all.w;
#else
        for (int i = 0; i < kNumbers; ++i) out[i] = from[i];
#endif
    }

    // 256^-digit.
    static PENSTOCK_BOTH Real weight(int digit) {
        const auto bits = static_cast<std::uint32_t>(127 - 8 * digit) << 23;
        Real value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }

    // Of a vector, or of a dense leaf: 0. They lie before the digits of the tier that brought the vector.
    static PENSTOCK_BOTH Real scale(const Batch& batch, const Leaf& leaf, int vector) {
        int tier = 0, before = 0;
        while (leaf.vectors[tier] <= vector) before = leaf.vectors[tier++];
        const Word word = static_cast<const Word*>(batch.tiers[tier])[leaf.tier_offset[tier] + (vector - before)];
        Real value;
        memcpy(&value, &word, sizeof value);
        return value;
    }
};

struct Doubles {
    using Real = double;
    using Word = double;
    static constexpr int kNumbers = 1;
    static constexpr bool kScaled = false;

    static PENSTOCK_BOTH void numbers(Word word, Real (&out)[kNumbers]) { out[0] = word; }
    static PENSTOCK_BOTH void load(const Real* from, Real (&out)[kNumbers]) { out[0] = *from; }
    static PENSTOCK_BOTH Real weight(int) { return 1; }
    static PENSTOCK_BOTH Real scale(const Batch&, const Leaf&, int) { return 1; }
};

}  // namespace penstock::hmatrix::gpu
