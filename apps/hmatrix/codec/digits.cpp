// Splits numbers into signed bytes.
#include "hmatrix/codec/digits.hpp"

#include <cmath>

namespace penstock::hmatrix {

double digit_error(double scale, int digits) noexcept {
    // Standard deviation of a uniform distribution over one step.
    return scale * std::ldexp(1 / std::sqrt(12.0), -8 * (digits - 1));
}

void split_digits(const double* values, std::int64_t count, double scale, std::int8_t* const (&out)[kDigits]) noexcept {
    const double steps = std::ldexp(1 / scale, 8 * (kDigits - 1));
    for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t left = std::llrint(values[i] * steps);
        for (int digit = kDigits - 1; digit >= 0; --digit) {
            const std::int64_t low = ((left + 128) & 255) - 128;
            out[digit][i] = static_cast<std::int8_t>(low);
            left = (left - low) / 256;
        }
    }
}

std::array<double, kDigits> squares_left(const double* values, std::int64_t count, double scale,
                                         const std::int8_t* const (&digits)[kDigits]) noexcept {
    const double steps = 1 / scale;
    std::array<double, kDigits> sums{};
    for (std::int64_t i = 0; i < count; ++i) {
        double left = values[i] * steps;
        double weight = 1;
        for (int d = 0; d < kDigits; ++d, weight /= 256) {
            left -= weight * digits[d][i];
            sums[d] += left * left;
        }
    }
    for (double& sum : sums) sum = sum * scale * scale;
    return sums;
}

}  // namespace penstock::hmatrix
