// A triangle mesh: the domain of a boundary-element problem. Each triangle has one unknown.
//
// Lengths are in metres unless a reader was told another unit. Triangles refer to vertices by index, from 0. A Mesh may
// hold anything that a file held; clean.hpp checks and repairs what the solver needs.
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
    // One value a triangle if the file has them (.pbf: potential in volts), otherwise empty.
    std::vector<double> values;

    std::int64_t unknowns() const noexcept { return static_cast<std::int64_t>(triangles.size()); }
};

// Whether the point is finite and within 1e60 m of the planes through the origin, so that the fourth power of a length
// does not overflow.
bool in_range(const Point& p);

std::vector<Point> centroids(const Mesh& mesh);
std::vector<double> areas(const Mesh& mesh);  // in square metres

// Whether the corners are finite and span a triangle whose height, relative to its longest edge, is above rounding.
bool has_area(const Point& a, const Point& b, const Point& c);

}  // namespace penstock::hmatrix
