// Turns boxes into the input of a kernel: the widest access that the whole box allows, and units of similar size. Pure,
// so that tests need no GPU.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/boxes/box_lanes.hpp"
#include "penstock/box.hpp"

namespace penstock::device {

// Returns all boxes of a copy, simplified. Throws Error{invalid_argument} if one is invalid.
std::vector<Box> simplified(std::span<const Box> boxes);

// Requires: simplify_box made `box`.
BoxWork plan_box(const Box& box);
std::uint64_t units_of(const BoxWork& work) noexcept;

// Parts of a plan, for packs too.
// Returns the largest power of two, at most 16, that divides the address and all strides.
unsigned common_alignment(const void* pointer, std::span<const std::int64_t> strides) noexcept;
// The innermost dimension is added first.
void add_dimension(BoxWork& work, std::uint64_t extent, std::int64_t to_stride, std::int64_t from_stride) noexcept;
// Counts the pieces, and sets the step from a lane's piece to its next, as a number of places in each dimension.
void finish_grid(BoxWork& work) noexcept;

}  // namespace penstock::device
