// Finds vertices with equal coordinates and faulty triangles, for inspect() and clean().
#pragma once

#include <cstdint>
#include <vector>

#include "hmatrix/geometry/mesh.hpp"

namespace penstock::hmatrix {

// For each vertex, the index of the first vertex with equal coordinates (0 equals -0). A vertex that is not finite gets
// its own index.
std::vector<std::int32_t> first_of_place(const std::vector<Point>& vertices);

enum class Fault : std::uint8_t { none, duplicate, bad_index, not_finite, without_area };

// The fault of each triangle. Triangles are duplicates if they have the same points. original[t] is the triangle that t
// repeats, or t itself.
struct Judged {
    std::vector<Fault> faults;
    std::vector<std::int64_t> original;
};
Judged judge(const Mesh& mesh, const std::vector<std::int32_t>& place);

}  // namespace penstock::hmatrix
