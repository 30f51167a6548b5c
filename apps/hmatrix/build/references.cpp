// Keeps the two references of ACA+ outside the approximation.
#include "hmatrix/build/references.hpp"

#include <algorithm>
#include <cmath>

namespace penstock::hmatrix {
namespace {

double norm(const std::vector<double>& x) {
    double sum = 0;
    for (const double value : x) sum += value * value;
    return std::sqrt(sum);
}

void subtract(double factor, const std::vector<double>& x, std::vector<double>& y) {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] -= factor * x[i];
}

template <class Used>
std::int64_t smallest(const std::vector<double>& values, std::int64_t count, Used used) {
    std::int64_t found = -1;
    for (std::int64_t i = 0; i < count; ++i) {
        if (used(i)) continue;
        if (found < 0 || (!values.empty() && std::abs(values[i]) < std::abs(values[found]))) found = i;
    }
    return found;
}

}  // namespace

References::References(Cross& cross) : cross_(cross) {
    renew_column();
    renew_row();
}

void References::renew_column() {
    column_at_ = smallest(row_, cross_.columns(), [&](std::int64_t i) { return cross_.column_used(i); });
    column_.assign(cross_.rows(), 0.0);
    if (column_at_ >= 0) cross_.column(column_at_, column_);
}

void References::renew_row() {
    row_at_ = smallest(column_, cross_.rows(), [&](std::int64_t i) { return cross_.row_used(i); });
    row_.assign(cross_.columns(), 0.0);
    if (row_at_ >= 0) cross_.row(row_at_, row_);
}

std::optional<Pivot> References::pivot() const {
    const std::int64_t row = column_at_ < 0 ? -1 : cross_.largest_row(column_);
    const std::int64_t column = row_at_ < 0 ? -1 : cross_.largest_column(row_);
    const double by_column = row < 0 ? 0 : std::abs(column_[row]);
    const double by_row = column < 0 ? 0 : std::abs(row_[column]);
    if (by_column == 0 && by_row == 0) return std::nullopt;
    if (by_column > by_row) return Pivot{true, row, -1};
    return Pivot{false, -1, column};
}

void References::update(const std::vector<double>& u, const std::vector<double>& v) {
    const double row_before = row_norm();
    const double column_before = column_norm();
    if (column_at_ >= 0) subtract(v[column_at_], u, column_);
    if (row_at_ >= 0) subtract(u[row_at_], v, row_);
    // If the residual of a reference drops by thirteen digits at once, only rounding is left of it.
    constexpr double kNothing = 1e-13;
    if (column_at_ >= 0 && (cross_.column_used(column_at_) || column_norm() <= kNothing * column_before)) {
        renew_column();
    }
    if (row_at_ >= 0 && (cross_.row_used(row_at_) || row_norm() <= kNothing * row_before)) renew_row();
}

double References::row_norm() const { return norm(row_); }

double References::column_norm() const { return norm(column_); }

}  // namespace penstock::hmatrix
