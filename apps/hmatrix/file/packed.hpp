// Leaves in memory as a batch of the file: encoded, in order, with what the tables will say of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hmatrix/file/format.hpp"
#include "hmatrix/tree/blocks.hpp"

namespace penstock::hmatrix {

// A leaf as doubles: V and then U, or the block, in one tier.
TieredLeaf encode_doubles(Factors factors);

// Bytes of one tier of a leaf, in either encoding.
std::int64_t tier_bytes(Encoding encoding, const LeafShape& shape, int tier) noexcept;

LeafRecord record_of(const Leaf& leaf, const LeafShape& shape) noexcept;
LeafShape shape_of(const LeafRecord& record) noexcept;

// Where each tier of a batch of these leaves lies: tier_begin, tier_bytes and bytes of a BatchRecord.
BatchRecord lay_out(Encoding encoding, std::span<const TieredLeaf> leaves, int tiers) noexcept;

// Copies one tier of all leaves to its place, one behind the other.
void pack_tier(std::span<const TieredLeaf> leaves, int tier, std::byte* to) noexcept;

}  // namespace penstock::hmatrix
