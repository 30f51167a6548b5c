// Geodesic spheres, cut from an icosahedron. Corners on a shared edge are made once and looked up by their edge.
#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "hmatrix/geometry/shape_checks.hpp"
#include "hmatrix/geometry/shapes.hpp"

namespace penstock::hmatrix {
namespace {

Point on_sphere(const Point& p) {
    const double r = std::hypot(p.x, p.y, p.z);
    return {p.x / r, p.y / r, p.z / r};
}

Mesh icosahedron() {
    const double t = (1 + std::sqrt(5.0)) / 2;
    Mesh mesh;
    mesh.vertices = {{-1, t, 0}, {1, t, 0}, {-1, -t, 0}, {1, -t, 0}, {0, -1, t}, {0, 1, t},
                     {0, -1, -t}, {0, 1, -t}, {t, 0, -1}, {t, 0, 1}, {-t, 0, -1}, {-t, 0, 1}};
    for (Point& p : mesh.vertices) p = on_sphere(p);
    mesh.triangles = {{0, 11, 5}, {0, 5, 1}, {0, 1, 7}, {0, 7, 10}, {0, 10, 11}, {1, 5, 9}, {5, 11, 4},
                      {11, 10, 2}, {10, 7, 6}, {7, 1, 8}, {3, 9, 4}, {3, 4, 2}, {3, 2, 6}, {3, 6, 8},
                      {3, 8, 9}, {4, 9, 5}, {2, 4, 11}, {6, 2, 10}, {8, 6, 7}, {9, 8, 1}};
    return mesh;
}

// Cuts every triangle of a mesh into parts^2 triangles, with new corners on the sphere.
class Cutter {
  public:
    Cutter(const Mesh& mesh, std::int32_t parts) : from_(mesh), parts_(parts) { cut_.vertices = mesh.vertices; }

    Mesh run() {
        cut_.triangles.reserve(from_.triangles.size() * static_cast<std::size_t>(parts_) * parts_);
        for (const Triangle& triangle : from_.triangles) cut(triangle);
        return std::move(cut_);
    }

  private:
    // The corner that lies i parts toward b and j parts toward c, seen from a, for a triangle (a, b, c).
    std::int32_t corner(const Triangle& t, std::int32_t i, std::int32_t j) {
        const std::array<std::int32_t, 3> share{parts_ - i - j, i, j};
        for (std::size_t k = 0; k < 3; ++k) {
            if (share[k] == parts_) return t[k];
        }
        for (std::size_t k = 0; k < 3; ++k) {
            if (share[k] == 0) return on_edge(t[(k + 1) % 3], t[(k + 2) % 3], share[(k + 2) % 3]);
        }
        std::int32_t& inside = inside_[static_cast<std::size_t>(i * parts_ + j)];
        if (inside < 0) inside = add(t, share);
        return inside;
    }

    std::int32_t on_edge(std::int32_t a, std::int32_t b, std::int32_t toward_b) {
        if (a > b) {
            std::swap(a, b);
            toward_b = parts_ - toward_b;
        }
        const std::uint64_t edge = static_cast<std::uint64_t>(a) << 32 | static_cast<std::uint32_t>(b);
        auto& made = edges_[edge];
        if (made.empty()) {
            for (std::int32_t k = 1; k < parts_; ++k) made.push_back(add({a, b, a}, {parts_ - k, k, 0}));
        }
        return made[static_cast<std::size_t>(toward_b) - 1];
    }

    std::int32_t add(const Triangle& t, const std::array<std::int32_t, 3>& share) {
        Point p;
        for (std::size_t k = 0; k < 3; ++k) {
            const Point& c = cut_.vertices[static_cast<std::size_t>(t[k])];
            p = {p.x + share[k] * c.x, p.y + share[k] * c.y, p.z + share[k] * c.z};
        }
        cut_.vertices.push_back(on_sphere(p));
        return static_cast<std::int32_t>(cut_.vertices.size()) - 1;
    }

    void cut(const Triangle& t) {
        inside_.assign(static_cast<std::size_t>(parts_) * static_cast<std::size_t>(parts_), -1);
        for (std::int32_t i = 0; i < parts_; ++i) {
            for (std::int32_t j = 0; i + j < parts_; ++j) {
                cut_.triangles.push_back({corner(t, i, j), corner(t, i + 1, j), corner(t, i, j + 1)});
                if (i + j + 1 == parts_) continue;
                cut_.triangles.push_back({corner(t, i + 1, j), corner(t, i + 1, j + 1), corner(t, i, j + 1)});
            }
        }
    }

    const Mesh& from_;
    std::int32_t parts_;
    Mesh cut_;
    std::unordered_map<std::uint64_t, std::vector<std::int32_t>> edges_;
    std::vector<std::int32_t> inside_;  // corners inside the current triangle; -1: not made yet
};

}  // namespace

Mesh sphere(std::int64_t triangles, double radius) {
    check_shape("make a sphere", triangles);
    check_size("make a sphere", "radius", radius);
    std::int32_t parts = 1, halvings = 0;
    while (20LL * parts * parts < triangles) ++parts;
    while (parts % 2 == 0) {
        parts /= 2;
        ++halvings;
    }
    Mesh mesh = icosahedron();
    if (parts > 1) mesh = Cutter(mesh, parts).run();
    for (std::int32_t k = 0; k < halvings; ++k) mesh = Cutter(mesh, 2).run();
    for (Point& p : mesh.vertices) p = {radius * p.x, radius * p.y, radius * p.z};
    return mesh;
}

}  // namespace penstock::hmatrix
