// Centroids, areas and the tests of single triangles that the solver uses.
#include "hmatrix/geometry/mesh.hpp"

#include <algorithm>
#include <cmath>

namespace penstock::hmatrix {
namespace {

constexpr double kRounding = 1e-14;

double doubled_area(const Point& p, const Point& q, const Point& r) {
    const double ux = q.x - p.x, uy = q.y - p.y, uz = q.z - p.z;
    const double vx = r.x - p.x, vy = r.y - p.y, vz = r.z - p.z;
    return std::hypot(uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx);
}

double distance(const Point& p, const Point& q) { return std::hypot(q.x - p.x, q.y - p.y, q.z - p.z); }

}  // namespace

std::vector<Point> centroids(const Mesh& mesh) {
    std::vector<Point> found;
    found.reserve(mesh.triangles.size());
    for (const auto& [a, b, c] : mesh.triangles) {
        const Point &p = mesh.vertices[a], &q = mesh.vertices[b], &r = mesh.vertices[c];
        found.push_back({(p.x + q.x + r.x) / 3, (p.y + q.y + r.y) / 3, (p.z + q.z + r.z) / 3});
    }
    return found;
}

std::vector<double> areas(const Mesh& mesh) {
    std::vector<double> found;
    found.reserve(mesh.triangles.size());
    for (const auto& [a, b, c] : mesh.triangles) {
        found.push_back(doubled_area(mesh.vertices[a], mesh.vertices[b], mesh.vertices[c]) / 2);
    }
    return found;
}

bool in_range(const Point& p) {
    constexpr double kFarthest = 1e60;
    return std::abs(p.x) <= kFarthest && std::abs(p.y) <= kFarthest && std::abs(p.z) <= kFarthest;
}

bool has_area(const Point& a, const Point& b, const Point& c) {
    const double longest = std::max({distance(a, b), distance(b, c), distance(c, a)});
    const double doubled = doubled_area(a, b, c);
    return std::isfinite(doubled) && std::isfinite(longest * longest) && doubled > kRounding * longest * longest;
}

}  // namespace penstock::hmatrix
