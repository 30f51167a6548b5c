// See least_squares.hpp.
#include "hmatrix/solve/methods/least_squares.hpp"

#include <cmath>
#include <utility>

namespace penstock::hmatrix {
namespace {

constexpr double kSingular = 1e-15;  // relative to its column: a smaller diagonal is rounding

}  // namespace

bool LeastSquares::add(std::span<const double> above, double below) {
    std::vector<double> column(above.begin(), above.end());
    double whole = below * below;
    for (const double value : above) whole += value * value;
    for (std::size_t i = 0; i + 1 < column.size(); ++i) {
        const auto [c, s] = rotations_[i];
        const double first = column[i], second = column[i + 1];
        column[i] = c * first + s * second;
        column[i + 1] = c * second - s * first;
    }
    const double diagonal = std::hypot(column.back(), below);
    if (diagonal <= kSingular * std::sqrt(whole)) return false;
    const Rotation rotation{column.back() / diagonal, below / diagonal};
    column.back() = diagonal;
    columns_.push_back(std::move(column));
    rotations_.push_back(rotation);
    right_.push_back(-rotation.s * right_.back());
    right_[right_.size() - 2] *= rotation.c;
    return true;
}

double LeastSquares::residual() const noexcept { return std::abs(right_.back()); }

std::vector<double> LeastSquares::solve() const {
    std::vector<double> y(right_.begin(), right_.end() - 1);
    for (std::size_t j = y.size(); j-- > 0;) {
        y[j] /= columns_[j][j];
        for (std::size_t i = 0; i < j; ++i) y[i] -= columns_[j][i] * y[j];
    }
    return y;
}

std::vector<double> LeastSquares::residual_vector() const {
    std::vector<double> vector(right_.size());
    vector.back() = right_.back();
    for (std::size_t i = rotations_.size(); i-- > 0;) {
        const auto [c, s] = rotations_[i];
        const double first = vector[i], second = vector[i + 1];
        vector[i] = c * first - s * second;
        vector[i + 1] = s * first + c * second;
    }
    return vector;
}

}  // namespace penstock::hmatrix
