// Surfaces made by rule, for examples, tests and benchmarks that need no file.
//
// A shape has at least the requested number of triangles, and otherwise as few as its construction allows. All shapes
// are closed, have no duplicates, and have outward normals. Lengths are in metres.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hmatrix/geometry/mesh.hpp"

namespace penstock::hmatrix {

inline constexpr std::int64_t kMostTriangles = 100'000'000;  // needs several gigabytes of memory

// Geodesic sphere about the origin with 20 f^2 triangles, f = odd * 2^k. Each face of an icosahedron is cut into odd^2
// triangles. Then every triangle is cut into four, k times. New corners are moved onto the sphere each time.
Mesh sphere(std::int64_t triangles, double radius = 1);

// Cube [0, edge]^3 with 12 n^2 triangles. If graded, the lines become quadratically denser toward the edges, where the
// charge is singular; n is then even.
struct CubeOptions {
    double edge = 1;
    bool graded = true;
};
Mesh cube(std::int64_t triangles, const CubeOptions& options = {});

// Torus about the z axis, made of pairs of triangles that form near squares.
struct TorusOptions {
    double ring = 1;    // radius of the circle in the middle of the tube
    double tube = 0.4;  // radius of the tube; below `ring`
};
Mesh torus(std::int64_t triangles, const TorusOptions& options = {});

// A sphere with radius radius * (1 + height * h), where h is a sum of spherical harmonics of degrees 3 and 8 within
// [-1, 1].
struct BumpyOptions {
    double radius = 1;
    double height = 0.25;  // within [0, 0.9]
};
Mesh bumpy(std::int64_t triangles, const BumpyOptions& options = {});

// Two equal spheres centred at z = -height and z = +height: a conductor above a grounded plane, and its mirror image.
// Values are -1 V on the lower sphere and +1 V on the upper one. The triangles of the upper sphere come last, in the
// order of those of the lower.
struct MirroredOptions {
    double radius = 0.25;
    double height = 0.5;  // above `radius`
};
Mesh mirrored_spheres(std::int64_t triangles, const MirroredOptions& options = {});

std::vector<std::string> shape_names();  // "sphere", "cube", "torus", "bumpy", "mirrored-spheres"
// Makes the shape of that name with default sizes. Throws Error{invalid_argument} that lists the names.
Mesh shape(const std::string& name, std::int64_t triangles);

}  // namespace penstock::hmatrix
