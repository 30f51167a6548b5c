// Lines of text that device code makes, against printf.
#include "penstock/ondevice/line.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>

namespace penstock::ondevice {
namespace {

template <class... Parts>
std::string line_of(const Parts&... parts) {
    TextLine<100> line;
    (line.add(parts), ...);
    return {line.text(), line.length()};
}

std::string printed(const char* format, double value) {
    char text[64];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

TEST(LineTest, texts_and_whole_numbers_are_put_together) {
    EXPECT_EQ(line_of("step ", 7, ' ', 8u, " at ", -9L, "/", ~0ull), "step 7 8 at -9/18446744073709551615");
    EXPECT_EQ(line_of(std::numeric_limits<long long>::min(), ' ', 0), "-9223372036854775808 0");
    EXPECT_EQ(line_of(hex(0xdeadbeefull), ' ', hex(0), ' ', hex(~0ull)), "deadbeef 0 ffffffffffffffff");
}

TEST(LineTest, what_does_not_fit_is_left_off_and_the_line_ends) {
    TextLine<5> line;
    line.add("abc");
    line.add(12345);
    line.end();
    EXPECT_EQ(std::string(line.text(), line.length()), "abc12\n");
}

TEST(LineTest, floating_numbers_are_those_of_printf) {
    const double special[] = {0.0, -0.0, 1.0, -1.5, 100000, 1e6, 999999.5, 999999.4, 123456.5, 123457.5, 1e-4, 1e-5,
                              9.99995e-5, 3.14159265358979, 1e22, 1e23, 1e100, 1e-100, 5e-324, 0.1, 0.5, 1234565, 1e15,
                              2.2250738585072014e-308, 1.7976931348623157e308, 1e16, 1e17, HUGE_VAL, -HUGE_VAL};
    for (const double value : special) EXPECT_EQ(line_of(value), printed("%g", value));
    EXPECT_EQ(line_of(std::nan("")), "nan");
    EXPECT_EQ(line_of(0.1f), "0.1");
    std::mt19937_64 random(7);
    for (int turn = 0; turn < 100'000; ++turn) {
        const u64 bits = random();
        double value = 0;
        std::memcpy(&value, &bits, sizeof value);  // any exponent there is
        if (turn % 2 == 0) value = std::ldexp(static_cast<double>(bits >> 11), static_cast<int>(bits % 64) - 80);
        if (!std::isfinite(value)) continue;
        ASSERT_EQ(line_of(value), printed("%g", value)) << turn;
    }
}

TEST(LineTest, more_digits_are_right_but_for_the_last) {
    EXPECT_EQ(line_of(digits(1.0 / 3, 10)), "0.3333333333");
    EXPECT_EQ(line_of(digits(2.0 / 3, 1)), "0.7");
    EXPECT_EQ(line_of(digits(2.5, 99)), "2.5");
    std::mt19937_64 random(8);
    for (int turn = 0; turn < 20'000; ++turn) {
        const double value = std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 400) - 250);
        const int count = 1 + static_cast<int>(random() % most_digits);
        const double back = std::strtod(line_of(digits(value, count)).c_str(), nullptr);
        const double half_a_digit = std::abs(value) * 0.5 * std::pow(10.0, 1 - count);
        ASSERT_LE(std::abs(back - value), half_a_digit + 2 * std::abs(value) * std::pow(10.0, 1 - most_digits))
            << value << ' ' << count;
    }
}

}  // namespace
}  // namespace penstock::ondevice
