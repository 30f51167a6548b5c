// A leaf in tiers, with its most significant bytes first, so that a product of low accuracy reads few bytes.
//
// Tier 0 holds what the coarsest accuracy needs. Each further tier holds what the next finer accuracy needs in
// addition. A low-rank leaf stores singular vectors, each with as many digits as its singular value requires (VALR,
// Kriemann 2023). A dense leaf stores its entries, all with the same number of digits. The number of digits never rises
// from one singular vector to the next, so one count a digit describes a tier: `counts[tier][d]` vectors have digit d
// in tiers 0 to `tier`. For a dense leaf a count is 0 or 1.
//
// A tier of a leaf holds, in this order and with each column padded to kPad bytes:
//   float32 scale of each vector that is new in this tier (dense: one scale, in tier 0)
//   for each digit: the columns of V, then the columns of U, of the vectors that gain this digit here
//   (dense: for each digit gained here, the columns of the block).
// A vector pair contributes scale * u v^T, where u and v are the sums of their digits; see digits.hpp.
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

// The shape of a leaf. `counts` past the file's last tier repeat the counts of that tier.
struct LeafShape {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    bool low_rank = false;
    std::array<DigitCounts, kMaxTiers> counts{};

    // Number of vectors that have digit d in the tiers before `tier`. The vectors that gain the digit in `tier` begin
    // there.
    std::int64_t before(int tier, int digit) const noexcept { return tier == 0 ? 0 : counts[tier - 1][digit]; }
    std::int64_t tier_bytes(int tier) const noexcept;
};

struct TieredLeaf {
    LeafShape shape;
    std::array<std::vector<std::byte>, kMaxTiers> tiers;
};

// `accuracies`: one for each tier, falling, at most kMaxTiers; each is relative to the leaf in the Frobenius norm.
// Throws Error{unsupported} if four digits or 65,535 vectors do not reach the last accuracy, and for entries above
// kLargestEntry. Parts below the normal numbers of single precision are dropped. A matrix whose entries are all below
// kSmallestMatrix therefore cannot be stored in tiers.
TieredLeaf encode(Factors factors, std::span<const double> accuracies);

// Decodes the leaf from tiers 0 to `tiers.size() - 1`: its U and V, or its block. For tests and for readers that want
// numbers.
Factors decode(const LeafShape& shape, std::span<const std::span<const std::byte>> tiers);

}  // namespace penstock::hmatrix
