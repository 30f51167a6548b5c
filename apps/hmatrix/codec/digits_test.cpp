// Digits: the value and the error of each prefix, and that no digit overflows.
#include "hmatrix/codec/digits.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace penstock::hmatrix {
namespace {

struct Split {
    double scale = 1;
    std::array<std::vector<std::int8_t>, kDigits> digits;

    explicit Split(const std::vector<double>& values) {
        double largest = 0;
        for (const double value : values) largest = std::max(largest, std::abs(value));
        scale = digit_scale(largest);
        for (auto& plane : digits) plane.resize(values.size());
        split_digits(values.data(), static_cast<std::int64_t>(values.size()), scale,
                     {digits[0].data(), digits[1].data(), digits[2].data(), digits[3].data()});
    }
    double value(std::size_t i, int prefix) const {
        double sum = 0;
        for (int d = 0; d < prefix; ++d) sum += std::ldexp(static_cast<double>(digits[d][i]), -8 * d);
        return scale * sum;
    }
};

std::vector<double> values_of_all_kinds() {
    std::vector<double> values{0.0, 1.0, -1.0, 0.5, -0.5, 1.0 / 126, 127.5 / 126 / 256, -128.0 / 126 / 256, 1e-9};
    std::mt19937_64 random(1);
    for (int i = 0; i < 5000; ++i) values.push_back(static_cast<double>(random() >> 11) * 0x1p-52 - 1);
    for (int i = -130 * 256; i <= 130 * 256; i += 7) {  // values halfway between two digits
        values.push_back(std::clamp((i + 0.5) / 126 / 256, -1.0, 1.0));
    }
    return values;
}

TEST(Digits, a_prefix_is_off_by_at_most_half_a_step) {
    for (const double unit : {1.0, -3.7e20, 2.5e-30}) {
        std::vector<double> values = values_of_all_kinds();
        for (double& value : values) value *= unit;
        const Split split(values);
        for (std::size_t i = 0; i < values.size(); ++i) {
            for (int prefix = 1; prefix <= kDigits; ++prefix) {
                const double step = std::ldexp(split.scale, -8 * (prefix - 1));
                // The digits that follow can add at most |-128/256 - 128/256^2 - ...| steps.
                ASSERT_LE(std::abs(split.value(i, prefix) - values[i]), 0.502 * step) << values[i] << " by " << prefix;
            }
        }
    }
}

TEST(Digits, the_largest_value_does_not_run_over_with_any_carry) {
    for (const double largest : {1.0, 126.0, 0.1, 1e30, std::nextafter(1.0, 2.0)}) {
        const Split split({largest, -largest, largest * (1 - 1e-7), -largest * (1 - 1e-7)});
        EXPECT_NEAR(split.value(0, kDigits), largest, largest * 1e-9);
        EXPECT_NEAR(split.value(1, kDigits), -largest, largest * 1e-9);
        EXPECT_EQ(split.digits[0][0], 126);
        EXPECT_EQ(split.digits[0][1], -126);
        EXPECT_EQ(split.digits[0][2], 126) << "rounded up by what follows it";
    }
}

TEST(Digits, zeros_are_zeros) {
    const Split split({0.0, -0.0, 0.0});
    EXPECT_EQ(split.scale, 1);
    for (const auto& plane : split.digits) EXPECT_EQ(std::count(plane.begin(), plane.end(), 0), 3);
}

TEST(Digits, expected_and_measured_errors_are_those_of_the_digits) {
    std::vector<double> values(20000);
    std::mt19937_64 random(2);
    for (double& value : values) value = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
    const Split split(values);
    const auto squares = squares_left(
        values.data(), 20000, split.scale,
        {split.digits[0].data(), split.digits[1].data(), split.digits[2].data(), split.digits[3].data()});
    for (int prefix = 1; prefix <= kDigits; ++prefix) {
        double square = 0;
        for (std::size_t i = 0; i < values.size(); ++i) square += std::pow(split.value(i, prefix) - values[i], 2);
        EXPECT_NEAR(squares[prefix - 1] / square, 1, 1e-5) << prefix;
        EXPECT_NEAR(std::sqrt(square / 20000) / digit_error(split.scale, prefix), 1, 0.02) << prefix;
    }
}

}  // namespace
}  // namespace penstock::hmatrix
