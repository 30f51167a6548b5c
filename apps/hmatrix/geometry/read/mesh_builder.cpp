// See readers.hpp. This file makes the checks that every format shares.
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "hmatrix/geometry/read/readers.hpp"

namespace penstock::hmatrix {
namespace {

constexpr auto kMost = static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max());

constexpr const char* kDamaged = "the file is damaged, or its byte order is not what it says";

}  // namespace

void MeshBuilder::vertex(double x, double y, double z) {
    if (mesh_.vertices.size() == kMost) scanner_.refuse("more than " + std::to_string(kMost) + " vertices");
    if (!std::isfinite(x) || !std::isfinite(y) || !std::isfinite(z)) {
        scanner_.refuse_here(
            "vertex " + std::to_string(mesh_.vertices.size()) + " has a coordinate that is not a finite number",
            kDamaged);
    }
    mesh_.vertices.push_back({x, y, z});
}

std::string MeshBuilder::bad_index(std::size_t triangle, std::int64_t index) const {
    return "triangle " + std::to_string(triangle) + " names vertex " + std::to_string(index) + ", and there are " +
           std::to_string(mesh_.vertices.size()) + " from 0";
}

void MeshBuilder::face(std::span<const std::int64_t> corners) {
    if (corners.size() < 3) {
        scanner_.refuse_here("the face after triangle " + std::to_string(mesh_.triangles.size()) + " has " +
                           std::to_string(corners.size()) + " corners",
                       "faces need three or more");
    }
    for (const std::int64_t corner : corners) {
        if (corner < 0 || corner > static_cast<std::int64_t>(kMost)) {
            scanner_.refuse_here(bad_index(mesh_.triangles.size(), corner), kDamaged);
        }
    }
    for (std::size_t k = 2; k < corners.size(); ++k) {
        mesh_.triangles.push_back({static_cast<std::int32_t>(corners[0]), static_cast<std::int32_t>(corners[k - 1]),
                                   static_cast<std::int32_t>(corners[k])});
    }
}

Mesh MeshBuilder::finish(double unit_metres) {
    if (mesh_.triangles.empty()) scanner_.refuse("it holds no triangles", "give a file with faces");
    for (std::size_t t = 0; t < mesh_.triangles.size(); ++t) {
        for (const std::int32_t corner : mesh_.triangles[t]) {
            const bool known = static_cast<std::size_t>(corner) < mesh_.vertices.size();
            if (!known) scanner_.refuse(bad_index(t, corner), kDamaged);
        }
    }
    for (std::size_t v = 0; v < mesh_.vertices.size(); ++v) {
        Point& p = mesh_.vertices[v];
        p = {p.x * unit_metres, p.y * unit_metres, p.z * unit_metres};
        if (in_range(p)) continue;
        scanner_.refuse("vertex " + std::to_string(v) + " has a coordinate beyond 1e60 m, in units of " +
                           std::to_string(unit_metres) + " m",
                       kDamaged);
    }
    return std::move(mesh_);
}

}  // namespace penstock::hmatrix
