// A triangle mesh: what a boundary-element problem is posed on. One unknown lives on each triangle.
//
// Lengths are in metres unless a reader was told another unit. Triangles name vertices by position, from 0. A Mesh may
// hold anything a file held; what the solver needs of it is checked and mended in clean.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace penstock::hmatrix {

struct Point {
    double x = 0;
    double y = 0;
    double z = 0;
};

using Triangle = std::array<std::int32_t, 3>;

struct Mesh {
    std::vector<Point> vertices;
    std::vector<Triangle> triangles;
    std::vector<double> values;  // one number a triangle where the file has them (.pbf: potential in volts), else empty

    std::int64_t unknowns() const noexcept { return static_cast<std::int64_t>(triangles.size()); }
};

// Finite, and so near that no square of a square of a length overflows: within 1e60 m of the planes through the origin.
bool in_range(const Point& p);

std::vector<Point> centroids(const Mesh& mesh);
std::vector<double> areas(const Mesh& mesh);  // square metres

// Whether three corners are finite and span a triangle: its height over the longest edge is above rounding.
bool has_area(const Point& a, const Point& b, const Point& c);

}  // namespace penstock::hmatrix
