// A growing basis of a Krylov space, and the orthogonalisation of a new vector against it.
//
// The basis allocates blocks of columns as it grows, so a method without restarts pays only for the iterations that it
// makes. Orthogonalisation is classical Gram-Schmidt. It repeats while a pass removes most of the vector. Each pass
// reads the basis once for all dot products and once for the subtraction.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hmatrix/solve/vectors.hpp"

namespace penstock::hmatrix {

class Basis {
  public:
    // `limit`: the largest number of columns that will ever be used.
    Basis(VectorSpace& space, std::int64_t limit);

    double* column(std::int64_t index);  // allocates columns up to it; throws Error{out_of_memory}
    // result[i] = dot product of column i and x.
    void dots(const double* x, std::span<double> result) const;
    // y += sum of factors[i] * column i.
    void combine(std::span<const double> factors, double* y) const;
    // Subtracts from x its components along the first coefficients.size() columns, and adds them to `coefficients`.
    // Returns the norm of the remainder: 0 if it is only rounding, NaN if x holds one. Requires: these columns are
    // orthonormal.
    double orthogonalise(double* x, std::span<double> coefficients) const;

  private:
    VectorSpace& space_;
    std::int64_t block_;  // columns
    std::vector<std::shared_ptr<double>> blocks_;
};

}  // namespace penstock::hmatrix
