// Centroids and areas: the two things of a mesh that everything above asks for.
#include "hmatrix/geometry/mesh.hpp"

#include <cmath>

namespace penstock::hmatrix {

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
        const Point &p = mesh.vertices[a], &q = mesh.vertices[b], &r = mesh.vertices[c];
        const double ux = q.x - p.x, uy = q.y - p.y, uz = q.z - p.z;
        const double vx = r.x - p.x, vy = r.y - p.y, vz = r.z - p.z;
        found.push_back(std::hypot(uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx) / 2);
    }
    return found;
}

}  // namespace penstock::hmatrix
