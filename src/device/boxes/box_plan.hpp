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

}  // namespace penstock::device
