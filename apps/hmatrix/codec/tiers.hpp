// A leaf in tiers: its most significant bytes first, so that a product of little accuracy reads little.
//
// Tier 0 holds what the coarsest accuracy needs; each further tier what the next finer one needs beyond that. A
// low-rank leaf stores singular vectors, a vector with as many digits as its singular value deserves (VALR, Kriemann
// 2023); a dense leaf stores its entries with the same number of digits each. Because digits needed only fall from
// vector to vector, one count a digit says it all: `counts[tier][d]` vectors have digit d in tiers 0 to `tier`. For a
// dense leaf a count is 0 or 1.
//
// A tier of a leaf is, in this order and each column padded to kPad bytes:
//   float32 scale of each vector new in this tier (dense: one, in tier 0)
//   for each digit: the columns of V, then the columns of U, of the vectors that gain this digit here
//   (dense: for each digit gained here, the columns of the block).
// A vector pair's term is scale * u v^T with u and v the sums of their digits; see digits.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "hmatrix/build/factors.hpp"
#include "hmatrix/codec/digits.hpp"

namespace penstock::hmatrix {

constexpr double kLargestEntry = 1e30;
constexpr double kSmallestMatrix = 1e-20;

inline std::int64_t padded(std::int64_t bytes) noexcept { return (bytes + kPad - 1) / kPad * kPad; }

using DigitCounts = std::array<std::uint16_t, kDigits>;

// What a leaf is, beside its bytes. `counts` past the file's tiers are those of its last tier.
struct LeafShape {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    bool low_rank = false;
    std::array<DigitCounts, kMaxTiers> counts{};

    // Vectors that have digit d in tiers before `tier`: where that tier's begin.
    std::int64_t before(int tier, int digit) const noexcept { return tier == 0 ? 0 : counts[tier - 1][digit]; }
    std::int64_t tier_bytes(int tier) const noexcept;
};

struct TieredLeaf {
    LeafShape shape;
    std::array<std::vector<std::byte>, kMaxTiers> tiers;
};

// `accuracies`: of each tier, relative to the leaf in the Frobenius norm, falling; at most kMaxTiers. Throws
// Error{unsupported} when four digits or 65,535 vectors do not reach the last, and for entries above kLargestEntry.
// What is below the normal numbers of single precision is left out: a matrix in units that make all of it smaller than
// kSmallestMatrix is not for tiers.
TieredLeaf encode(Factors factors, std::span<const double> accuracies);

// The leaf as tiers 0 to `tier` say: U V^T, or the block. For tests and for readers who want numbers.
Factors decode(const LeafShape& shape, std::span<const std::span<const std::byte>> tiers);

}  // namespace penstock::hmatrix
