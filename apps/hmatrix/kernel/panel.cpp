// Panels of a mesh: the geometry of each triangle, worked out once so that an integral over it need not.
#include "hmatrix/kernel/panel.hpp"

#include <cmath>
#include <string>

#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

Panel panel(const Point* const (&corners)[3]) {
    Panel made{};
    for (int c = 0; c < 3; ++c) {
        made.corner[c][0] = corners[c]->x;
        made.corner[c][1] = corners[c]->y;
        made.corner[c][2] = corners[c]->z;
    }
    for (int e = 0; e < 3; ++e) {
        const double* from = made.corner[e];
        const double* to = made.corner[(e + 1) % 3];
        made.length[e] = std::hypot(to[0] - from[0], to[1] - from[1], to[2] - from[2]);
        for (int axis = 0; axis < 3; ++axis) made.tangent[e][axis] = (to[axis] - from[axis]) / made.length[e];
    }
    double cross[3];
    for (int axis = 0; axis < 3; ++axis) {
        const int next = (axis + 1) % 3, last = (axis + 2) % 3;
        cross[axis] = made.tangent[0][next] * made.tangent[1][last] - made.tangent[0][last] * made.tangent[1][next];
    }
    const double size = std::hypot(cross[0], cross[1], cross[2]);
    for (int axis = 0; axis < 3; ++axis) made.normal[axis] = cross[axis] / size;
    return made;
}

bool usable(const Panel& made) {
    return std::isfinite(made.normal[0]) && std::isfinite(made.normal[1]) && std::isfinite(made.normal[2]);
}

}  // namespace

std::vector<Panel> panels(const Mesh& mesh) {
    std::vector<Panel> made;
    made.reserve(mesh.triangles.size());
    for (const Triangle& triangle : mesh.triangles) {
        made.push_back(panel({&mesh.vertices[triangle[0]], &mesh.vertices[triangle[1]], &mesh.vertices[triangle[2]]}));
        if (usable(made.back())) continue;
        throw Error(ErrorCode::invalid_argument, "prepare triangles",
                    "triangle " + std::to_string(made.size() - 1) + " has no area, or a corner that is not a number",
                    "clean the mesh first");
    }
    return made;
}

}  // namespace penstock::hmatrix
