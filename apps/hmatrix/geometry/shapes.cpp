// See shapes.hpp. The cube, the torus, shapes made from spheres, and shapes by name. sphere.cpp makes spheres.
#include "hmatrix/geometry/shapes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>

#include "hmatrix/geometry/shape_checks.hpp"

namespace penstock::hmatrix {
namespace {

// Positions, from 0 to 1, of the n + 1 lines across a face.
std::vector<double> lines(std::int32_t n, bool graded) {
    std::vector<double> at(static_cast<std::size_t>(n) + 1);
    for (std::int32_t i = 0; i <= n; ++i) {
        const double u = static_cast<double>(i) / n;
        const double near = std::min(u, 1 - u);
        at[static_cast<std::size_t>(i)] = !graded ? u : u <= 0.5 ? 2 * near * near : 1 - 2 * near * near;
    }
    return at;
}

// Numbers the points of the cube's surface lattice in the order of first use, so that faces share vertices.
class Lattice {
  public:
    Lattice(Mesh& mesh, const std::vector<double>& at, double edge) : mesh_(mesh), at_(at), edge_(edge) {}

    std::int32_t vertex(const std::array<std::int32_t, 3>& place) {
        const auto [known, made] = number_.try_emplace(place, static_cast<std::int32_t>(mesh_.vertices.size()));
        if (made) mesh_.vertices.push_back({along(place[0]), along(place[1]), along(place[2])});
        return known->second;
    }

  private:
    double along(std::int32_t i) const { return edge_ * at_[static_cast<std::size_t>(i)]; }
    Mesh& mesh_;
    const std::vector<double>& at_;
    double edge_;
    std::map<std::array<std::int32_t, 3>, std::int32_t> number_;
};

struct CubeFace {
    std::size_t axis = 0;  // normal to the face
    bool upper = false;    // at the upper end of the axis
};

void add_face(Mesh& mesh, Lattice& lattice, std::int32_t n, const CubeFace& face) {
    const auto [axis, upper] = face;
    const std::size_t u = (axis + 1) % 3, v = (axis + 2) % 3;
    for (std::int32_t i = 0; i < n; ++i) {
        for (std::int32_t j = 0; j < n; ++j) {
            std::array<std::int32_t, 4> corner{};
            for (std::int32_t k = 0; k < 4; ++k) {
                std::array<std::int32_t, 3> place{};
                place[axis] = upper ? n : 0;
                place[u] = i + (k == 1 || k == 2);
                place[v] = j + (k >= 2);
                corner[static_cast<std::size_t>(k)] = lattice.vertex(place);
            }
            if (!upper) std::swap(corner[1], corner[3]);
            mesh.triangles.push_back({corner[0], corner[1], corner[2]});
            mesh.triangles.push_back({corner[0], corner[2], corner[3]});
        }
    }
}

// The smallest n with factor * n^2 >= triangles.
std::int32_t least(std::int64_t triangles, std::int64_t factor) {
    std::int64_t n = 1;
    n = std::max<std::int64_t>(n, static_cast<std::int64_t>(std::sqrt(static_cast<double>(triangles / factor))) - 1);
    while (factor * n * n < triangles) ++n;
    return static_cast<std::int32_t>(n);
}

// Sum of harmonic polynomials of the direction d, within [-1, 1]: x y z of degree 3 and Re (x + i y)^8 of degree 8.
double bumps(const Point& d) {
    const double r2 = d.x * d.x + d.y * d.y, angle = std::atan2(d.y, d.x);
    return 0.6 * std::pow(3.0, 1.5) * d.x * d.y * d.z + 0.4 * r2 * r2 * r2 * r2 * std::cos(8 * angle);
}

}  // namespace

Mesh cube(std::int64_t triangles, const CubeOptions& options) {
    check_shape("make a cube", triangles);
    check_size("make a cube", "edge", options.edge);
    std::int32_t n = least(triangles, 12);
    if (options.graded) n += n % 2;
    Mesh mesh;
    const std::vector<double> at = lines(n, options.graded);
    Lattice lattice(mesh, at, options.edge);
    for (std::size_t axis = 0; axis < 3; ++axis) {
        add_face(mesh, lattice, n, {axis, false});
        add_face(mesh, lattice, n, {axis, true});
    }
    return mesh;
}

Mesh torus(std::int64_t triangles, const TorusOptions& options) {
    check_shape("make a torus", triangles);
    check_size("make a torus", "tube", options.tube);
    check_size("make a torus", "ring", options.ring);
    if (options.tube >= options.ring) refuse_shape("make a torus", "the tube is as thick as the ring is wide");
    const double ratio = options.ring / options.tube;
    const auto tube = std::max<std::int64_t>(
        3, static_cast<std::int64_t>(std::lround(std::sqrt(static_cast<double>(triangles) / (2 * ratio)))));
    const auto ring = std::max<std::int64_t>(3, (triangles + 2 * tube - 1) / (2 * tube));
    Mesh mesh;
    for (std::int64_t i = 0; i < ring; ++i) {
        for (std::int64_t j = 0; j < tube; ++j) {
            const double a = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(ring);
            const double b = 2 * std::numbers::pi * static_cast<double>(j) / static_cast<double>(tube);
            const double out = options.ring + options.tube * std::cos(b);
            mesh.vertices.push_back({out * std::cos(a), out * std::sin(a), options.tube * std::sin(b)});
            const auto at = [&](std::int64_t p, std::int64_t q) {
                return static_cast<std::int32_t>((p % ring) * tube + q % tube);
            };
            mesh.triangles.push_back({at(i, j), at(i + 1, j), at(i + 1, j + 1)});
            mesh.triangles.push_back({at(i, j), at(i + 1, j + 1), at(i, j + 1)});
        }
    }
    return mesh;
}

Mesh bumpy(std::int64_t triangles, const BumpyOptions& options) {
    check_size("make a bumpy sphere", "radius", options.radius);
    if (!(options.height >= 0 && options.height <= 0.9)) {
        refuse_shape("make a bumpy sphere", "a height of " + std::to_string(options.height) + " radii; use 0 to 0.9");
    }
    Mesh mesh = sphere(triangles);
    for (Point& p : mesh.vertices) {
        const double r = options.radius * (1 + options.height * bumps(p));
        p = {r * p.x, r * p.y, r * p.z};
    }
    return mesh;
}

Mesh mirrored_spheres(std::int64_t triangles, const MirroredOptions& options) {
    check_shape("make mirrored spheres", triangles);
    check_size("make mirrored spheres", "height", options.height);
    if (options.radius >= options.height) refuse_shape("make mirrored spheres", "the spheres would touch");
    const Mesh one = sphere((triangles + 1) / 2, options.radius);
    const auto points = static_cast<std::int32_t>(one.vertices.size());
    Mesh mesh;
    for (const Point& p : one.vertices) mesh.vertices.push_back({p.x, p.y, p.z - options.height});
    for (const Point& p : one.vertices) mesh.vertices.push_back({p.x, p.y, options.height - p.z});
    mesh.triangles = one.triangles;
    for (const auto& [a, b, c] : one.triangles) mesh.triangles.push_back({a + points, c + points, b + points});
    mesh.values.assign(one.triangles.size(), -1.0);
    mesh.values.resize(mesh.triangles.size(), 1.0);
    return mesh;
}

std::vector<std::string> shape_names() { return {"sphere", "cube", "torus", "bumpy", "mirrored-spheres"}; }

Mesh shape(const std::string& name, std::int64_t triangles) {
    if (name == "sphere") return sphere(triangles);
    if (name == "cube") return cube(triangles);
    if (name == "torus") return torus(triangles);
    if (name == "bumpy") return bumpy(triangles);
    if (name == "mirrored-spheres") return mirrored_spheres(triangles);
    std::string known;
    for (const std::string& one : shape_names()) known += (known.empty() ? "" : ", ") + one;
    refuse_shape("make a shape", "there is no shape '" + name + "'; there are " + known);
}

}  // namespace penstock::hmatrix
