// A triangle prepared for integrals over it.
//
// POD, shared by host and GPU code: everything that does not depend on the observer is computed once, 22 doubles a
// triangle. The triangle is kept in a frame of its own: corner 0 at the origin, corner 1 on the first axis, corner 2
// above it (at a positive second coordinate), so an observer costs three dot products and the rest is plane geometry.
// Edge e goes from corner e to corner (e + 1) % 3; corners are numbered so that edge 0 is the longest.
#pragma once

#include <cstdint>
#include <vector>

#include "hmatrix/geometry/mesh.hpp"

namespace penstock::hmatrix {

struct Panel {
    double origin[3];   // corner 0
    double axis[3][3];  // orthonormal, right-handed: along edge 0, in the plane, normal to it
    double base;        // corner 1 is (base, 0)
    double apex[2];     // corner 2
    double reach2;      // square of the distance from the centroid beyond which the far rule is the more accurate
    double tx[2];       // unit tangents of edges 1 and 2; that of edge 0 is (1, 0)
    double ty[2];
    double length[2];   // of edges 1 and 2; that of edge 0 is base
};
static_assert(sizeof(Panel) == 22 * sizeof(double), "no padding: panels are copied to GPUs as they are");

std::vector<Panel> panels(const Mesh& mesh);  // throws Error{invalid_argument} naming a triangle of no area

}  // namespace penstock::hmatrix
