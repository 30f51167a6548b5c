// A triangle prepared for integrals over it, and the points that look at it.
//
// POD, shared by host and GPU code: everything that does not depend on the observer is computed once, 24 doubles a
// triangle. Edge e goes from corner e to corner (e + 1) % 3.
#pragma once

#include <cstdint>
#include <vector>

#include "hmatrix/geometry/mesh.hpp"

namespace penstock::hmatrix {

struct Panel {
    double corner[3][3];   // [corner][xyz]
    double tangent[3][3];  // unit, along the edge
    double length[3];      // of the edges
    double normal[3];      // unit
};

std::vector<Panel> panels(const Mesh& mesh);  // throws Error{invalid_argument} naming a triangle of no area

}  // namespace penstock::hmatrix
