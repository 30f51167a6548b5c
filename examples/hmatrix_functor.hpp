// A kernel of your own for an H-matrix, callable by threads of the host and of a GPU: C++17, numbers and pointers only.
#pragma once

#include <cmath>
#include <cstdint>

#include "hmatrix/gpu/team.hpp"  // PENSTOCK_BOTH: __host__ __device__ where nvcc compiles

// Screened charges (Yukawa): exp(-kappa r) / r between points.
struct Yukawa {
    const double* points;  // xyz of each
    double kappa;
    double diagonal;

    PENSTOCK_BOTH double operator()(std::int64_t row, std::int64_t column) const {
        if (row == column) return diagonal;
        const double *a = points + 3 * row, *b = points + 3 * column;
        const double x = a[0] - b[0], y = a[1] - b[1], z = a[2] - b[2];
        const double r = std::sqrt(x * x + y * y + z * z);
        return std::exp(-kappa * r) / r;
    }
};
