// Columns of equal length as digits, on their way into the tiers of a leaf.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hmatrix/codec/digits.hpp"

namespace penstock::hmatrix {

class SplitColumns {
  public:
    // `values` must outlive it: columns of `rows` values.
    SplitColumns(const std::vector<double>& values, std::int64_t rows);
    // Sets the digits of a column; what its first digit, its first two, ... leave out: sums of squares.
    std::array<double, kDigits> split(std::int64_t column, double scale);
    // One digit of columns begin to end, each padded.
    void append(int digit, std::int64_t begin, std::int64_t end, std::vector<std::byte>& to) const;

  private:
    const double* values_;
    std::int64_t rows_;
    std::int64_t stride_;
    std::array<std::vector<std::int8_t>, kDigits> planes_;
};

}  // namespace penstock::hmatrix
