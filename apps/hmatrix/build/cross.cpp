// Residuals of a cross approximation, and how it grows.
#include "hmatrix/build/cross.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

void subtract(double factor, const double* __restrict x, double* __restrict y, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) y[i] -= factor * x[i];
}

double norm(const std::vector<double>& x) {
    double sum = 0;
    for (const double value : x) sum += value * value;
    return std::sqrt(sum);
}

std::int64_t largest(const std::vector<double>& values, const std::vector<bool>& used) {
    std::int64_t found = -1;
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(values.size()); ++i) {
        if (!used[i] && (found < 0 || std::abs(values[i]) > std::abs(values[found]))) found = i;
    }
    return found;
}

}  // namespace

Cross::Cross(const Entries& entries, std::span<const std::int64_t> rows, std::span<const std::int64_t> columns)
    : entries_(entries), rows_(rows), columns_(columns), row_used_(rows.size()), column_used_(columns.size()) {}

void Cross::check(std::span<const double> values, std::int64_t row, std::int64_t column) const {
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (std::isfinite(values[i])) continue;
        const std::int64_t at_row = row >= 0 ? rows_[row] : rows_[i];
        const std::int64_t at_column = column >= 0 ? columns_[column] : columns_[i];
        throw Error(ErrorCode::invalid_argument, "assemble a matrix",
                    "the entry in row " + std::to_string(at_row) + ", column " + std::to_string(at_column) +
                        " is not a finite number",
                    "look for triangles that coincide, or mend the function that gives entries");
    }
}

void Cross::row(std::int64_t row, std::vector<double>& out) {
    out.resize(columns_.size());
    entries_.row(rows_[row], columns_, out.data());
    evaluated_ += columns();
    check(out, row, -1);
    for (std::int64_t k = 0; k < rank_; ++k) {
        subtract(u_[k * rows() + row], v_.data() + k * columns(), out.data(), columns());
    }
}

void Cross::column(std::int64_t column, std::vector<double>& out) {
    out.resize(rows_.size());
    entries_.column(rows_, columns_[column], out.data());
    evaluated_ += rows();
    check(out, -1, column);
    for (std::int64_t k = 0; k < rank_; ++k) {
        subtract(v_[k * columns() + column], u_.data() + k * rows(), out.data(), rows());
    }
}

double Cross::entry(std::int64_t row, std::int64_t column) {
    double value = 0;
    entries_.row(rows_[row], columns_.subspan(column, 1), &value);
    ++evaluated_;
    check({&value, 1}, row, column);
    for (std::int64_t k = 0; k < rank_; ++k) value -= u_[k * rows() + row] * v_[k * columns() + column];
    return value;
}

double Cross::add(std::int64_t row, std::int64_t column, const std::vector<double>& u, const std::vector<double>& v) {
    row_used_[row] = true;
    column_used_[column] = true;
    u_.insert(u_.end(), u.begin(), u.end());
    v_.insert(v_.end(), v.begin(), v.end());
    ++rank_;
    return norm(u) * norm(v);
}

std::int64_t Cross::largest_row(const std::vector<double>& column) const { return largest(column, row_used_); }

std::int64_t Cross::largest_column(const std::vector<double>& row) const { return largest(row, column_used_); }

Factors Cross::take() { return {rows(), columns(), rank_, true, std::move(u_), std::move(v_)}; }

}  // namespace penstock::hmatrix
