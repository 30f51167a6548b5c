// Singular values of a low-rank block, from its factors: what says how much of the block each vector is.
//
// U and V are orthonormalised (Gram-Schmidt, twice), and the small product of the triangles is decomposed by one-sided
// Jacobi rotations: short loops that need no library. Singular values are right to rounding of the largest.
#pragma once

#include <cstdint>
#include <vector>

#include "hmatrix/build/factors.hpp"

namespace penstock::hmatrix {

// U diag(sigma) V^T, columns of U and V of norm 1, sigma falling.
struct SingularFactors {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::vector<double> sigma;
    std::vector<double> u;
    std::vector<double> v;

    std::int64_t rank() const noexcept { return static_cast<std::int64_t>(sigma.size()); }
    double norm() const noexcept;  // Frobenius
};

SingularFactors decompose(Factors factors);

}  // namespace penstock::hmatrix
