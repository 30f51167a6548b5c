// Adds columns to a vector in host memory: the inner loops of vectors and of block-Jacobi, four columns in one pass.
//
// The sources that include it are compiled with -O3, which makes vector instructions of these loops.
#pragma once

#include <cstdint>

namespace penstock::hmatrix {

inline void add_one(double factor, const double* __restrict x, double* __restrict y, std::int64_t count) noexcept {
    for (std::int64_t i = 0; i < count; ++i) y[i] += factor * x[i];
}

// Four columns, each `stride` numbers after the one before.
struct FourColumns {
    const double* first = nullptr;
    std::int64_t stride = 0;
};

// y += sum of factors[i] * column i.
inline void add_four(const double (&factors)[4], const FourColumns& columns, double* __restrict y,
                     std::int64_t count) noexcept {
    const double* __restrict first = columns.first;
    const double* __restrict second = first + columns.stride;
    const double* __restrict third = second + columns.stride;
    const double* __restrict fourth = third + columns.stride;
    const double f0 = factors[0], f1 = factors[1], f2 = factors[2], f3 = factors[3];
    for (std::int64_t i = 0; i < count; ++i) {
        y[i] += (f0 * first[i] + f1 * second[i]) + (f2 * third[i] + f3 * fourth[i]);
    }
}

}  // namespace penstock::hmatrix
