// The small least-squares problem inside GMRES: min || beta e1 - H y ||, where H is a Hessenberg matrix that grows by
// columns.
//
// Givens rotations keep H triangular, so the residual is known after each column without solving. A column that would
// make H singular is left out; the answer is then that of the columns before it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace penstock::hmatrix {

class LeastSquares {
  public:
    explicit LeastSquares(double beta) : right_{beta} {}

    // Adds column size(): `above` holds its size() + 1 upper entries, and `below` >= 0 the entry under the diagonal.
    // Returns false if the column was left out. Entries that are not finite make residual() not finite.
    bool add(std::span<const double> above, double below);
    std::int64_t size() const noexcept { return static_cast<std::int64_t>(columns_.size()); }
    double residual() const noexcept;
    std::vector<double> solve() const;  // size() coefficients
    // The residual vector beta e1 - H y, with size() + 1 numbers.
    std::vector<double> residual_vector() const;

  private:
    struct Rotation {
        double c = 1;
        double s = 0;
    };
    std::vector<std::vector<double>> columns_;  // columns of the triangular matrix
    std::vector<Rotation> rotations_;
    std::vector<double> right_;  // rotated right-hand side
};

}  // namespace penstock::hmatrix
