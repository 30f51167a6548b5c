// Surfaces made by rule: for examples, tests and benchmarks that need no file.
//
// Each has at least as many triangles as asked, and the fewest that its construction allows. All are closed, without
// duplicates, and turn their normals outward. Lengths are in metres.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hmatrix/geometry/mesh.hpp"

namespace penstock::hmatrix {

inline constexpr std::int64_t kMostTriangles = 100'000'000;  // some gigabytes of memory

// Geodesic sphere about the origin: 20 f^2 triangles. f = odd * 2^k: each face of an icosahedron is cut into odd^2,
// then every triangle k times into four, the new corners moved onto the sphere each time.
Mesh sphere(std::int64_t triangles, double radius = 1);

// Cube [0, edge]^3: 12 n^2 triangles. Graded: lines lie quadratically closer toward the edges, where charge is
// singular; then n is even.
struct CubeOptions {
    double edge = 1;
    bool graded = true;
};
Mesh cube(std::int64_t triangles, const CubeOptions& options = {});

// About the z axis; nearly square pairs of triangles.
struct TorusOptions {
    double ring = 1;    // radius of the middle of the tube
    double tube = 0.4;  // radius of the tube, below ring
};
Mesh torus(std::int64_t triangles, const TorusOptions& options = {});

// A sphere whose radius is radius * (1 + height * h), h a sum of spherical harmonics of degrees 3 and 8 within [-1, 1].
struct BumpyOptions {
    double radius = 1;
    double height = 0.25;  // within [0, 0.9]
};
Mesh bumpy(std::int64_t triangles, const BumpyOptions& options = {});

// Two spheres of that radius centred at z = -height and z = +height, as a conductor above a grounded plane and its
// mirror image; values are -1 V on the lower and +1 V on the upper. The upper's triangles come last, in the order of
// the lower's.
struct MirroredOptions {
    double radius = 0.25;
    double height = 0.5;  // above radius
};
Mesh mirrored_spheres(std::int64_t triangles, const MirroredOptions& options = {});

std::vector<std::string> shape_names();  // "sphere", "cube", "torus", "bumpy", "mirrored-spheres"
// By name, at default sizes. Throws Error{invalid_argument} listing the names.
Mesh shape(const std::string& name, std::int64_t triangles);

}  // namespace penstock::hmatrix
