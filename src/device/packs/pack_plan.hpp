// Turns packs into the input of a kernel: runs, single numbers or tiles, and units of similar size. Pure, so that tests
// need no GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "device/packs/pack_lanes.hpp"
#include "penstock/pack.hpp"

namespace penstock::device {

// Returns all packs that are not empty, in as few dimensions as they need. The destination strides are positive and
// fall. No dimension has an extent of 1. Throws Error{invalid_argument} if one is invalid.
std::vector<Pack> simplified(std::span<const Pack> packs);

// The dimension along which the source is contiguous, or nearly so, if that is not the innermost dimension: then a walk
// along the destination would use a few bytes of each cache line. Requires: simplified() made `pack`.
std::optional<std::uint32_t> transposed_dimension(const Pack& pack) noexcept;

// Adds the work of one pack, in one or two parts. Requires: simplified() made `pack`.
void plan_pack(const Pack& pack, std::vector<PackWork>& works);
inline constexpr std::size_t kWorksOfPack = 2;  // at most
std::uint64_t units_of(const PackWork& work) noexcept;

}  // namespace penstock::device
