// Boxes moved by the CPU: what the emulated device does in stream order, and what a context does for plain host memory.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "penstock/box.hpp"

namespace penstock::device {

// Of boxes that simplify_box made; others are moved too, slowly. Not more at once than the memory it touches allows.
void copy_box_on_host(const Box& box) noexcept;

// A fill is a copy that reads one place again and again. Where the destination is contiguous, that place holds the item
// many times, so that rows are long enough to be moved fast.
struct BoxFill {
    std::vector<std::byte> pattern;
    std::vector<Box> boxes;  // `source` of each is to be the pattern, wherever it is put
};
// Throws Error{invalid_argument}: boxes of other items, an item of 0 or more than kFillItemBytes, words to swap.
BoxFill plan_fill(std::span<const Box> boxes, std::span<const std::byte> item);

}  // namespace penstock::device
