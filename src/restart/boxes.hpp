// Boxes of a field: which bytes of the field they are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace penstock::restart {

struct FieldBox {
    std::vector<std::uint64_t> shape;  // of the field
    std::vector<std::uint64_t> start, count;
};

// Consecutive bytes of a field, and where they lie in the memory of the box.
struct RunOfField {
    std::uint64_t field_offset = 0;
    std::uint64_t memory_offset = 0;
    std::uint64_t bytes = 0;
};

std::uint64_t elements_of(std::span<const std::uint64_t> shape) noexcept;
// In order, each as long as can be: one where the box is whole rows of the field. Requires: the box lies in the field.
std::vector<RunOfField> runs_of(const FieldBox& box, std::uint64_t item_bytes);

}  // namespace penstock::restart
