// Computes the panels of a mesh: the geometry of each triangle that all integrals over it share.
//
// If the frame is orthonormal up to rounding, every integral is that of a triangle whose corners moved by rounding,
// even for a needle. The code therefore orthogonalises the second axis twice, and puts the longest edge on the first
// axis.
#include "hmatrix/kernel/panel.hpp"

#include <cmath>
#include <string>

#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

constexpr double kFarEdges = 20;  // measured for an equilateral triangle

double distance(const Point& a, const Point& b) { return std::hypot(b.x - a.x, b.y - a.y, b.z - a.z); }

double dot(const double* a, const double* b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

void difference(const Point& from, const Point& to, double* out) {
    out[0] = to.x - from.x;
    out[1] = to.y - from.y;
    out[2] = to.z - from.z;
}

void normalise(double* v) {
    const double size = std::hypot(v[0], v[1], v[2]);
    for (int k = 0; k < 3; ++k) v[k] /= size;
}

// The corner to number 0, so that edge 0 is the longest.
int first_corner(const Point* const (&c)[3]) {
    const double lengths[3] = {distance(*c[0], *c[1]), distance(*c[1], *c[2]), distance(*c[2], *c[0])};
    const int longer = lengths[1] > lengths[0] ? 1 : 0;
    return lengths[2] > lengths[longer] ? 2 : longer;
}

void set_frame(Panel& made, const double* base, const double* apex) {
    for (int k = 0; k < 3; ++k) made.axis[0][k] = base[k];
    normalise(made.axis[0]);
    double* second = made.axis[1];
    for (int k = 0; k < 3; ++k) second[k] = apex[k];
    for (int pass = 0; pass < 2; ++pass) {
        const double along = dot(second, made.axis[0]);
        for (int k = 0; k < 3; ++k) second[k] -= along * made.axis[0][k];
        normalise(second);
    }
    for (int k = 0; k < 3; ++k) {
        const int next = (k + 1) % 3, last = (k + 2) % 3;
        made.axis[2][k] = made.axis[0][next] * second[last] - made.axis[0][last] * second[next];
    }
}

// The distance, in longest edges, where both rules are equally accurate. The exact sum cancels more with the square of
// the distance and for thin triangles; the far rule's error falls with the sixth power of the distance.
double reach(const Panel& p) { return kFarEdges * std::pow(p.apex[1] / p.base, 1.0 / 8); }

void set_edge(Panel& made, int edge, double dx, double dy) {
    made.length[edge] = std::hypot(dx, dy);
    made.tx[edge] = dx / made.length[edge];
    made.ty[edge] = dy / made.length[edge];
}

Panel panel(const Point* const (&corners)[3]) {
    Panel made{};
    const int first = first_corner(corners);
    const Point &p = *corners[first], &q = *corners[(first + 1) % 3], &r = *corners[(first + 2) % 3];
    double base[3], apex[3];
    difference(p, q, base);
    difference(p, r, apex);
    set_frame(made, base, apex);
    made.origin[0] = p.x;
    made.origin[1] = p.y;
    made.origin[2] = p.z;
    made.base = std::hypot(base[0], base[1], base[2]);
    made.apex[0] = dot(apex, made.axis[0]);
    made.apex[1] = dot(apex, made.axis[1]);
    made.reach2 = std::pow(reach(made) * made.base, 2);
    set_edge(made, 0, made.apex[0] - made.base, made.apex[1]);
    set_edge(made, 1, -made.apex[0], -made.apex[1]);
    return made;
}

}  // namespace

std::vector<Panel> panels(const Mesh& mesh) {
    std::vector<Panel> made;
    made.reserve(mesh.triangles.size());
    for (const auto& [a, b, c] : mesh.triangles) {
        const Point &p = mesh.vertices[a], &q = mesh.vertices[b], &r = mesh.vertices[c];
        if (!has_area(p, q, r)) {
            throw Error(ErrorCode::invalid_argument, "prepare triangles",
                        "triangle " + std::to_string(made.size()) +
                            " has no area, or a corner that is not a finite number",
                        "clean the mesh first");
        }
        made.push_back(panel({&p, &q, &r}));
    }
    return made;
}

}  // namespace penstock::hmatrix
