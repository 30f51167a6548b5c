// One cycle of GMRES: an orthonormal basis that starts at a residual, the images of what was multiplied, and the small
// least-squares problem between them. Knows nothing of operators: its owner multiplies.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hmatrix/solve/methods/basis.hpp"
#include "hmatrix/solve/methods/least_squares.hpp"

namespace penstock::hmatrix {

class Arnoldi {
  public:
    // `limit`: products of a cycle, at most.
    Arnoldi(VectorSpace& space, std::int64_t limit) : space_(space), basis_(space, limit + 1) {}

    // Starts a cycle from a residual r of this norm, which must be above 0.
    void begin(const double* r, double norm);
    std::int64_t size() const noexcept { return small_->size(); }
    // The newest basis vector, to be multiplied next, and where its image is to be put.
    const double* newest() { return basis_.column(size()); }
    double* image() { return basis_.column(size() + 1); }
    // Takes in the image of a vector of this length. Returns the norm of the residual that is left, not a number when
    // the image holds one.
    double extend(double length_of_multiplied = 1);
    // The most that a vector grew when it was multiplied, of all cycles: no more than the norm of the matrix.
    double largest_gain() const noexcept { return largest_gain_; }
    // Nothing can be added any more: the space holds its own image. The residual is then 0, or the matrix is singular.
    bool exhausted() const noexcept { return exhausted_; }
    double residual() const noexcept { return small_->residual(); }
    // Factors of the multiplied vectors that make the residual smallest.
    std::vector<double> factors() const { return small_->solve(); }
    // y += sum of factors * basis vectors.
    void combine(const std::vector<double>& factors, double* y) const { basis_.combine(factors, y); }
    // r = the residual that is left.
    void residual_to(double* r);

  private:
    VectorSpace& space_;
    Basis basis_;
    std::optional<LeastSquares> small_;
    bool exhausted_ = false;
    double largest_gain_ = 0;
};

}  // namespace penstock::hmatrix
