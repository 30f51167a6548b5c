// Checks that all shapes share: the number of triangles, and sizes in metres.
#pragma once

#include <cmath>
#include <string>

#include "hmatrix/geometry/shapes.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {

[[noreturn]] inline void refuse_shape(const std::string& operation, const std::string& cause) {
    throw Error(ErrorCode::invalid_argument, operation, cause);
}

inline void check_shape(const std::string& operation, std::int64_t triangles) {
    if (triangles >= 1 && triangles <= kMostTriangles) return;
    refuse_shape(operation, std::to_string(triangles) + " triangles; use 1 to " + std::to_string(kMostTriangles));
}

inline void check_size(const std::string& operation, const std::string& what, double metres) {
    if (std::isfinite(metres) && metres > 0) return;
    refuse_shape(operation, "the " + what + " is " + std::to_string(metres) + " m; it must be above 0");
}

}  // namespace penstock::hmatrix
