// Numbers as signed bytes: the fixed-point digits in which the matrix stores its vectors.
//
// value = scale * (d0 + d1/256 + d2/256^2 + d3/256^3) with digits from -128 to 127. Because digits are signed, dropping
// the last digits rounds to nearest. A prefix of the digits is thus the best approximation in that many bytes, and one
// file serves every accuracy. For |value| <= kTopDigit * scale, |d0| stays below 127 even when lower digits carry into
// it.
#pragma once

#include <array>
#include <cstdint>

namespace penstock::hmatrix {

constexpr int kDigits = 4;
constexpr double kTopDigit = 126;
constexpr int kMaxTiers = 6;  // tiers of a leaf, see tiers.hpp
constexpr int kPad = 4;       // a column of digits is padded to a multiple of this many bytes

// The scale for values whose largest magnitude is `largest`; 1 for largest = 0.
inline double digit_scale(double largest) noexcept { return largest > 0 ? largest / kTopDigit : 1; }

// Expected root mean square error of a value that keeps only its first `digits` digits.
double digit_error(double scale, int digits) noexcept;

// Element d of the result is the sum, over `count` values, of the squared error that remains with digits 0 to d, in
// units of value squared.
std::array<double, kDigits> squares_left(const double* values, std::int64_t count, double scale,
                                         const std::int8_t* const (&digits)[kDigits]) noexcept;

// Writes digit d of value i to out[d][i], for `count` values and all digits. Requires: scale = digit_scale(largest
// magnitude of the values).
void split_digits(const double* values, std::int64_t count, double scale, std::int8_t* const (&out)[kDigits]) noexcept;

}  // namespace penstock::hmatrix
