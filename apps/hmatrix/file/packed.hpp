// Packs encoded leaves into a batch of the file, and computes the table records that describe them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hmatrix/file/format.hpp"
#include "hmatrix/tree/blocks.hpp"

namespace penstock::hmatrix {

// Encodes a leaf as doubles in one tier: V and then U, or the dense block.
TieredLeaf encode_doubles(Factors factors);

// Bytes of one tier of a leaf.
std::int64_t tier_bytes(Encoding encoding, const LeafShape& shape, int tier) noexcept;

LeafRecord record_of(const Leaf& leaf, const LeafShape& shape) noexcept;
LeafShape shape_of(const LeafRecord& record) noexcept;

// Lays out a batch of these leaves. Sets tier_begin, tier_bytes, bytes and leaves of the record; the caller sets the
// rest.
BatchRecord lay_out(Encoding encoding, std::span<const TieredLeaf> leaves, int tiers) noexcept;

// Copies one tier of all leaves to `to`, without gaps between leaves.
void pack_tier(std::span<const TieredLeaf> leaves, int tier, std::byte* to) noexcept;

}  // namespace penstock::hmatrix
