// A cross approximation in progress: its factors so far, and the residual of a row, a column or an entry.
//
// Both pivoting strategies in aca.cpp use it. A residual is always that of the current factors. A cross therefore makes
// its own row and column of the residual vanish, up to rounding.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hmatrix/build/factors.hpp"
#include "hmatrix/kernel/entries.hpp"

namespace penstock::hmatrix {

class Cross {
  public:
    Cross(const Entries& entries, std::span<const std::int64_t> rows, std::span<const std::int64_t> columns);

    std::int64_t rows() const noexcept { return static_cast<std::int64_t>(rows_.size()); }
    std::int64_t columns() const noexcept { return static_cast<std::int64_t>(columns_.size()); }
    std::int64_t rank() const noexcept { return rank_; }
    std::int64_t evaluated() const noexcept { return evaluated_; }

    // Compute the residual of a row, a column or an entry. Throw Error{invalid_argument} for an entry that is not
    // finite.
    void row(std::int64_t row, std::vector<double>& out);
    void column(std::int64_t column, std::vector<double>& out);
    double entry(std::int64_t row, std::int64_t column);

    // Adds u v^T, marks the row and the column as used, and returns the 2-norm of u v^T, which is ||u|| ||v||.
    double add(std::int64_t row, std::int64_t column, const std::vector<double>& u, const std::vector<double>& v);
    void skip_row(std::int64_t row) { row_used_[row] = true; }
    bool row_used(std::int64_t row) const { return row_used_[row]; }
    bool column_used(std::int64_t column) const { return column_used_[column]; }
    // The unused index of largest magnitude; -1 if all are used.
    std::int64_t largest_row(const std::vector<double>& column) const;
    std::int64_t largest_column(const std::vector<double>& row) const;

    Factors take();

  private:
    void check(std::span<const double> values, std::int64_t row, std::int64_t column) const;

    const Entries& entries_;
    std::span<const std::int64_t> rows_;
    std::span<const std::int64_t> columns_;
    std::vector<bool> row_used_;
    std::vector<bool> column_used_;
    std::int64_t rank_ = 0;
    std::int64_t evaluated_ = 0;
    std::vector<double> u_;
    std::vector<double> v_;
};

}  // namespace penstock::hmatrix
