// Splits columns of equal length into digits and appends them to the tiers of a leaf.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hmatrix/codec/digits.hpp"

namespace penstock::hmatrix {

class SplitColumns {
  public:
    // `values`: columns of `rows` values each. Requires: `values` outlives this object.
    SplitColumns(const std::vector<double>& values, std::int64_t rows);
    // Splits a column into its digits. Element d of the result is the sum of squared errors that remains with digits 0
    // to d.
    std::array<double, kDigits> split(std::int64_t column, double scale);
    // Appends one digit of columns begin to end - 1 to `to`, each column padded to a multiple of kPad bytes.
    void append(int digit, std::int64_t begin, std::int64_t end, std::vector<std::byte>& to) const;

  private:
    const double* values_;
    std::int64_t rows_;
    std::int64_t stride_;
    std::array<std::vector<std::int8_t>, kDigits> planes_;
};

}  // namespace penstock::hmatrix
