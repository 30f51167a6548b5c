// From boxes to what a kernel is given: the widest access that all of a box allows, and units of like size. Pure, so
// that it is tested without a GPU.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/boxes/box_lanes.hpp"
#include "penstock/box.hpp"

namespace penstock::device {

// All boxes of a copy, simplified. Throws Error{invalid_argument} when one makes no sense.
std::vector<Box> simplified(std::span<const Box> boxes);

// `box` is one that simplify_box made.
BoxWork plan_box(const Box& box);
std::uint64_t units_of(const BoxWork& work) noexcept;

}  // namespace penstock::device
