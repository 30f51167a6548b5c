// coverage_of(): whether boxes of several processes are all of an array, each element once, by one number of each.
#pragma once

#include <cstdint>
#include <span>

namespace penstock::data {

// A number for the elements of a box. Those of boxes that have each element of an array once add up to that of the
// array; those of others do not, but by a chance of 1 in 2^60. Sums overflow, as numbers without a sign do.
// Requires: as many counts as starts.
std::uint64_t coverage_of(std::span<const std::uint64_t> start, std::span<const std::uint64_t> count) noexcept;

}  // namespace penstock::data
