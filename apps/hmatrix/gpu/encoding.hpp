// How a kernel reads the two encodings: words of a column, and the numbers in a word.
#pragma once

#include <cstdint>
#include <cstring>

#include "hmatrix/gpu/leaf.hpp"
#include "hmatrix/gpu/team.hpp"

namespace penstock::hmatrix::gpu {

// Columns of one digit that one tier adds: places in words from the tier's part of the leaf.
template <class Encoding>
struct Piece {
    const typename Encoding::Word* v;
    const typename Encoding::Word* u;
    int begin;  // vector (dense: 0)
    int count;
    typename Encoding::Real weight;
};

struct Digits {
    using Real = float;
    using Word = std::uint32_t;
    static constexpr int kNumbers = 4;  // in a word

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

    static PENSTOCK_BOTH int vectors(const Batch& batch, const Leaf& leaf) {
        return leaf.counts[batch.tiers_used - 1][0];
    }

    static PENSTOCK_BOTH Real scale(const Batch& batch, const Leaf& leaf, int vector) {
        int tier = 0, before = 0;
        while (leaf.counts[tier][0] <= vector) before = leaf.counts[tier++][0];
        const Word word = static_cast<const Word*>(batch.tiers[tier])[leaf.tier_offset[tier] + (vector - before)];
        Real value;
        memcpy(&value, &word, sizeof value);
        return value;
    }

    template <class Visit>
    static PENSTOCK_BOTH void pieces(const Batch& batch, const Leaf& leaf, const Visit& visit) {
        const int v_words = (leaf.columns + 3) / 4, u_words = (leaf.rows + 3) / 4;
        for (int tier = 0; tier < batch.tiers_used; ++tier) {
            const auto before = [&](int digit) { return tier == 0 ? 0 : int{leaf.counts[tier - 1][digit]}; };
            const Word* at = static_cast<const Word*>(batch.tiers[tier]) + leaf.tier_offset[tier];
            at += leaf.counts[tier][0] - before(0);
            Real weight = 1;
            for (int digit = 0; digit < kDigits; ++digit, weight /= 256) {
                const int begin = before(digit), count = leaf.counts[tier][digit] - begin;
                if (count == 0) continue;
                if (leaf.low_rank) {
                    const Word* const u = at + static_cast<std::int64_t>(count) * v_words;
                    visit(Piece<Digits>{at, u, begin, count, weight});
                    at = u + static_cast<std::int64_t>(count) * u_words;
                } else {
                    visit(Piece<Digits>{nullptr, at, 0, leaf.columns, weight});
                    at += static_cast<std::int64_t>(leaf.columns) * u_words;
                }
            }
        }
    }
};

struct Doubles {
    using Real = double;
    using Word = double;
    static constexpr int kNumbers = 1;

    static PENSTOCK_BOTH void numbers(Word word, Real (&out)[kNumbers]) { out[0] = word; }
    static PENSTOCK_BOTH int vectors(const Batch&, const Leaf& leaf) { return leaf.low_rank ? leaf.counts[0][0] : 1; }
    static PENSTOCK_BOTH Real scale(const Batch&, const Leaf&, int) { return 1; }
    template <class Visit>
    static PENSTOCK_BOTH void pieces(const Batch& batch, const Leaf& leaf, const Visit& visit) {
        const Word* const at = static_cast<const Word*>(batch.tiers[0]) + leaf.tier_offset[0];
        if (!leaf.low_rank) return visit(Piece<Doubles>{nullptr, at, 0, leaf.columns, 1});
        const int rank = leaf.counts[0][0];
        visit(Piece<Doubles>{at, at + static_cast<std::int64_t>(rank) * leaf.columns, 0, rank, 1});
    }
};

}  // namespace penstock::hmatrix::gpu
