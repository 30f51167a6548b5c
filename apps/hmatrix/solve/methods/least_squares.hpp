// The small least-squares problem inside GMRES: min || beta e1 - H y ||, H a Hessenberg matrix that grows by columns.
//
// Givens rotations keep H triangular, so the residual is known after each column without solving. A column that adds
// nothing (H would be singular) is left out: the answer is then that of the columns before it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace penstock::hmatrix {

class LeastSquares {
  public:
    explicit LeastSquares(double beta) : right_{beta} {}

    // Column size(): `above` holds its size() + 1 upper entries, `below` the one under the diagonal, not negative.
    // False: it added nothing and was left out. Entries that are not finite make residual() not finite.
    bool add(std::span<const double> above, double below);
    std::int64_t size() const noexcept { return static_cast<std::int64_t>(columns_.size()); }
    double residual() const noexcept;
    std::vector<double> solve() const;  // size() numbers
    // The residual vector beta e1 - H y itself, size() + 1 numbers.
    std::vector<double> residual_vector() const;

  private:
    struct Rotation {
        double c = 1;
        double s = 0;
    };
    std::vector<std::vector<double>> columns_;  // of the triangle
    std::vector<Rotation> rotations_;
    std::vector<double> right_;  // rotated right-hand side
};

}  // namespace penstock::hmatrix
