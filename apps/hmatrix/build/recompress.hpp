// The singular value decomposition of a low-rank block, from its factors. A singular value tells how much its vectors
// contribute to the block.
//
// The code orthonormalises U and V (Gram-Schmidt, twice) and decomposes the small product of the two triangular factors
// by one-sided Jacobi rotations. These are short loops that need no library. Singular values are accurate to rounding
// of the largest.
#pragma once

#include <cstdint>
#include <vector>

#include "hmatrix/build/factors.hpp"

namespace penstock::hmatrix {

// The block U diag(sigma) V^T. Columns of U and V have norm 1; sigma is falling.
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
