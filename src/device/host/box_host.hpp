// Boxes that the CPU moves: in stream order for the emulated device, and at once for a context's plain host memory.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "penstock/box.hpp"

namespace penstock::device {

// Moves one box. Fast for boxes that simplify_box made, slow for others. Thread-safe for boxes that share no bytes.
void copy_box_on_host(const Box& box) noexcept;

// A fill is a copy that reads one place again and again. If the destination is contiguous, that place holds the item
// many times, so that rows are long enough to move fast.
struct BoxFill {
    std::vector<std::byte> pattern;
    std::vector<Box> boxes;  // the caller sets `source` of each box to its copy of the pattern
};
// Throws Error{invalid_argument} if a box has another item size, if the item has 0 or more than kFillItemBytes bytes,
// or if words are to be swapped.
BoxFill plan_fill(std::span<const Box> boxes, std::span<const std::byte> item);

}  // namespace penstock::device
