// Which vertices lie in the same place, and what that makes of triangles: for inspect() and clean().
#pragma once

#include <cstdint>
#include <vector>

#include "hmatrix/geometry/mesh.hpp"

namespace penstock::hmatrix {

// For each vertex the first vertex of equal coordinates (0 and -0 are equal); itself where it is the first, or is not
// finite.
std::vector<std::int32_t> first_of_place(const std::vector<Point>& vertices);

enum class Fault : std::uint8_t { none, duplicate, bad_index, not_finite, without_area };

// The fault of each triangle. A duplicate is told by its points; `original[t]` is the triangle it repeats, else t.
struct Judged {
    std::vector<Fault> faults;
    std::vector<std::int64_t> original;
};
Judged judge(const Mesh& mesh, const std::vector<std::int32_t>& place);

}  // namespace penstock::hmatrix
