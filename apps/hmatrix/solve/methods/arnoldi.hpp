// One cycle of GMRES: an orthonormal basis that starts with a residual, and the small least-squares problem for the
// images of the multiplied vectors. It calls no operator; its owner multiplies.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hmatrix/solve/methods/basis.hpp"
#include "hmatrix/solve/methods/least_squares.hpp"

namespace penstock::hmatrix {

class Arnoldi {
  public:
    // `limit`: the largest number of products in a cycle.
    Arnoldi(VectorSpace& space, std::int64_t limit) : space_(space), basis_(space, limit + 1) {}

    // Starts a cycle from a residual r of norm `norm`. Requires: norm > 0.
    void begin(const double* r, double norm);
    std::int64_t size() const noexcept { return small_->size(); }
    // The newest basis vector, which the owner multiplies next. image() is where the owner puts the result.
    const double* newest() { return basis_.column(size()); }
    double* image() { return basis_.column(size() + 1); }
    // Adds the image to the basis. `length_of_multiplied`: the norm of the multiplied vector. Returns the norm of the
    // remaining residual, or NaN if the image holds one.
    double extend(double length_of_multiplied = 1);
    // The largest growth of a vector under multiplication, over all cycles. It is a lower bound of the matrix norm.
    double largest_gain() const noexcept { return largest_gain_; }
    // True if the space contains its own image and cannot grow. The residual is then 0, or the matrix is singular.
    bool exhausted() const noexcept { return exhausted_; }
    double residual() const noexcept { return small_->residual(); }
    // The coefficients of the multiplied vectors that minimise the residual.
    std::vector<double> factors() const { return small_->solve(); }
    // y += sum of factors * basis vectors.
    void combine(const std::vector<double>& factors, double* y) const { basis_.combine(factors, y); }
    // r = the remaining residual.
    void residual_to(double* r);

  private:
    VectorSpace& space_;
    Basis basis_;
    std::optional<LeastSquares> small_;
    bool exhausted_ = false;
    double largest_gain_ = 0;
};

}  // namespace penstock::hmatrix
