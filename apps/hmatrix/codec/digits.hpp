// Numbers as signed bytes: the fixed-point digits that vectors of the matrix are stored in.
//
// value = scale * (d0 + d1/256 + d2/256^2 + d3/256^3) with digits from -128 to 127. Because digits are signed, leaving
// out the last ones rounds to nearest: a prefix of the digits is the best that many bytes can do, so one file serves
// every accuracy. |d0| stays below 127 for values up to kTopDigit * scale, carries included.
#pragma once

#include <cstdint>

namespace penstock::hmatrix {

constexpr int kDigits = 4;
constexpr double kTopDigit = 126;
constexpr int kMaxTiers = 6;  // of a leaf, see tiers.hpp
constexpr int kPad = 4;       // columns of digits are padded to this many bytes

// scale for values up to `largest` in magnitude; 1 for none.
inline double digit_scale(double largest) noexcept { return largest > 0 ? largest / kTopDigit : 1; }

// What the first `digits` digits leave out of a value: root mean square, to be expected before values are split.
double digit_error(double scale, int digits) noexcept;

// Sums of squares of what the first digit, the first two, ... leave out of `count` values, in units of value.
void add_squares_left(const double* values, std::int64_t count, double scale,
                      const std::int8_t* const (&digits)[kDigits], double (&squares)[kDigits]) noexcept;

// Digit d of value i goes to out[d][i], for `count` values and all digits. `scale` must be that of the largest value.
void split_digits(const double* values, std::int64_t count, double scale, std::int8_t* const (&out)[kDigits]) noexcept;

}  // namespace penstock::hmatrix
