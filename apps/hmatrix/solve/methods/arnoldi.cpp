// See arnoldi.hpp.
#include "hmatrix/solve/methods/arnoldi.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace penstock::hmatrix {

void Arnoldi::begin(const double* r, double norm) {
    small_.emplace(norm);
    exhausted_ = false;
    space_.copy(r, basis_.column(0));
    space_.scale(1 / norm, basis_.column(0));
}

double Arnoldi::extend(double length_of_multiplied) {
    double* const w = image();
    std::vector<double> along(static_cast<std::size_t>(size() + 1));
    const double length = basis_.orthogonalise(w, along);
    if (!std::isfinite(length)) return std::numeric_limits<double>::quiet_NaN();
    double squares = length * length;
    for (const double value : along) squares += value * value;
    largest_gain_ = std::max(largest_gain_, std::sqrt(squares) / length_of_multiplied);
    exhausted_ = !small_->add(along, length) || length == 0;
    if (!exhausted_) space_.scale(1 / length, w);
    return residual();
}

void Arnoldi::residual_to(double* r) {
    space_.copy(basis_.column(0), r);
    space_.scale(0, r);
    basis_.combine(small_->residual_vector(), r);
}

}  // namespace penstock::hmatrix
