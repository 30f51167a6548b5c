// A growing basis of a Krylov space, and a new vector made orthogonal to it.
//
// Memory is taken in blocks of columns as the basis grows, so an unrestarted method pays for the iterations it makes.
// Orthogonalisation is classical Gram-Schmidt, repeated while it takes most of the vector away: one pass over the basis
// for all dot products and one for the subtraction, each time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hmatrix/solve/vectors.hpp"

namespace penstock::hmatrix {

class Basis {
  public:
    // `limit`: columns that will ever be asked for.
    Basis(VectorSpace& space, std::int64_t limit);

    double* column(std::int64_t index);  // allocates up to it; throws Error{out_of_memory}
    // result[i] = column i . x.
    void dots(const double* x, std::span<double> result) const;
    // y += sum of factors[i] * column i.
    void combine(std::span<const double> factors, double* y) const;
    // Takes from x its parts along the first coefficients.size() columns, which must be orthonormal, and adds them to
    // `coefficients`. Returns the norm of what is left: 0 when that is no more than rounding, not a number when x holds
    // one.
    double orthogonalise(double* x, std::span<double> coefficients) const;

  private:
    VectorSpace& space_;
    std::int64_t block_;  // columns
    std::vector<std::shared_ptr<double>> blocks_;
};

}  // namespace penstock::hmatrix
