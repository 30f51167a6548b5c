// A batch is laid out tier by tier, and the leaves of a tier without gaps between them.
#include "hmatrix/file/packed.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

std::int64_t aligned(std::int64_t bytes) noexcept { return (bytes + kTierAlign - 1) / kTierAlign * kTierAlign; }

void append(const std::vector<double>& values, std::vector<std::byte>& to) {
    const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
    to.insert(to.end(), bytes, bytes + values.size() * sizeof(double));
}

}  // namespace

TieredLeaf encode_doubles(Factors factors) {
    if (factors.rank > 0xffff) {
        throw Error(ErrorCode::unsupported, "encode a block", "its rank, " + std::to_string(factors.rank) +
                    ", is above 65535", "lower eta, so that blocks lie further apart");
    }
    TieredLeaf leaf{{factors.rows, factors.columns, factors.low_rank, {}}, {}};
    for (DigitCounts& counts : leaf.shape.counts) counts[0] = static_cast<std::uint16_t>(factors.rank);
    leaf.tiers[0].reserve(factors.values() * sizeof(double));
    append(factors.v, leaf.tiers[0]);
    append(factors.u, leaf.tiers[0]);
    return leaf;
}

std::int64_t tier_bytes(Encoding encoding, const LeafShape& shape, int tier) noexcept {
    if (encoding == Encoding::tiers) return shape.tier_bytes(tier);
    if (tier > 0) return 0;
    const std::int64_t values =
        shape.low_rank ? shape.counts[0][0] * (shape.rows + shape.columns) : shape.rows * shape.columns;
    return values * static_cast<std::int64_t>(sizeof(double));
}

LeafRecord record_of(const Leaf& leaf, const LeafShape& shape) noexcept {
    LeafRecord record{leaf.row, leaf.column, leaf.rows, leaf.columns, leaf.low_rank ? 1u : 0u, 0, {}};
    for (int tier = 0; tier < kMaxTiers; ++tier) {
        std::copy(shape.counts[tier].begin(), shape.counts[tier].end(), record.counts[tier]);
    }
    return record;
}

LeafShape shape_of(const LeafRecord& record) noexcept {
    LeafShape shape{record.rows, record.columns, record.low_rank != 0, {}};
    for (int tier = 0; tier < kMaxTiers; ++tier) {
        std::copy(std::begin(record.counts[tier]), std::end(record.counts[tier]), shape.counts[tier].begin());
    }
    return shape;
}

BatchRecord lay_out(Encoding encoding, std::span<const TieredLeaf> leaves, int tiers) noexcept {
    BatchRecord batch{};
    batch.leaves = static_cast<std::int64_t>(leaves.size());
    for (int tier = 0; tier < kMaxTiers; ++tier) {
        batch.tier_begin[tier] = tier < tiers ? aligned(batch.bytes) : batch.bytes;
        if (tier >= tiers) continue;
        for (const TieredLeaf& leaf : leaves) batch.tier_bytes[tier] += tier_bytes(encoding, leaf.shape, tier);
        batch.bytes = batch.tier_begin[tier] + batch.tier_bytes[tier];
    }
    return batch;
}

void pack_tier(std::span<const TieredLeaf> leaves, int tier, std::byte* to) noexcept {
    for (const TieredLeaf& leaf : leaves) {
        if (leaf.tiers[tier].empty()) continue;
        std::memcpy(to, leaf.tiers[tier].data(), leaf.tiers[tier].size());
        to += leaf.tiers[tier].size();
    }
}

}  // namespace penstock::hmatrix
