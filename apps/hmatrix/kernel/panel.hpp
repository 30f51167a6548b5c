// A triangle prepared for integrals over it.
//
// A panel is a POD that host and GPU code share. It holds everything that does not depend on the observer: 22 doubles a
// triangle. A panel has a coordinate frame of its own: corner 0 is the origin, corner 1 lies on the first axis, and
// corner 2 has a positive second coordinate. An observer therefore costs three dot products, and the rest is plane
// geometry. Edge e runs from corner e to corner (e + 1) % 3. The corners are numbered so that edge 0 is the longest.
#pragma once

#include <cstdint>
#include <vector>

#include "hmatrix/geometry/mesh.hpp"

namespace penstock::hmatrix {

struct Panel {
    double origin[3];   // corner 0
    double axis[3][3];  // orthonormal and right-handed: along edge 0, in the plane, and normal to it
    double base;        // corner 1 is (base, 0)
    double apex[2];     // corner 2
    double reach2;      // squared distance from the centroid beyond which the far rule is more accurate
    double tx[2];       // tx, ty: unit tangents of edges 1 and 2; the tangent of edge 0 is (1, 0)
    double ty[2];
    double length[2];  // lengths of edges 1 and 2; edge 0 has length `base`
};
static_assert(sizeof(Panel) == 22 * sizeof(double), "no padding: panels are copied to GPUs as they are");

// Throws Error{invalid_argument} that names a triangle without area.
std::vector<Panel> panels(const Mesh& mesh);

}  // namespace penstock::hmatrix
