// What an index of Python asks of a dataset, where that is a box: integers, slices with steps from 1 on, and "...".
#pragma once

#include <array>
#include <cstdint>

#include "data/layout/layout.hpp"
#include "python/core/core.hpp"

namespace penstock::python {

// Dimensions are those of the file. Where it has them the other way round, the first of the caller is its last.
struct Asked {
    data::ElementBox box;
    std::array<bool, data::kMostDimensions> dropped{};  // by an integer
    std::uint64_t elements = 1;
};

// False: an index that needs more than a box, selects nothing, or is wrong. Requires: the GIL.
bool ask(nb::handle index, const data::Layout& layout, bool backwards, Asked& asked);

// A tuple of one number for each dimension that is left, in the caller's order.
nb::object tuple_of(const std::array<std::int64_t, data::kMostDimensions>& numbers, const Asked& asked,
                    std::size_t dimensions, bool backwards);

// Whether `out` has the shape of what was asked, in C order: memory of the host, and of a GPU.
bool has_shape(nb::handle out, const data::Layout& layout, const Asked& asked);
bool has_device_shape(nb::handle out, const data::Layout& layout, const Asked& asked);

}  // namespace penstock::python
