// Names convert to values and back, sizes are parsed or refused, and deadlines saturate.
#include "penstock/types.hpp"

#include <gtest/gtest.h>

#include "penstock/error.hpp"

namespace penstock {
namespace {

TEST(Names, every_path_name_round_trips) {
    for (std::size_t i = 0; i < kPathKinds; ++i) {
        const auto kind = static_cast<PathKind>(i);
        EXPECT_EQ(path_from_string(to_string(kind)), kind);
    }
    EXPECT_FALSE(path_from_string("gdss").has_value());
}

TEST(ParseBytes, accepts_binary_decimal_and_plain) {
    EXPECT_EQ(parse_bytes("0"), 0u);
    EXPECT_EQ(parse_bytes("4096"), 4096u);
    EXPECT_EQ(parse_bytes("64KiB"), 65536u);
    EXPECT_EQ(parse_bytes("4 MiB"), 4 * kMiB);
    EXPECT_EQ(parse_bytes("16G"), 16 * kGiB);
    EXPECT_EQ(parse_bytes("1.5GB"), 1500000000u);
    EXPECT_EQ(parse_bytes("1e9"), 1000000000u);
    EXPECT_EQ(parse_bytes("18446744073709551615"), UINT64_MAX);
}

TEST(ParseBytes, refuses_what_is_no_size) {
    for (const char* text : {"", "-1", "1.5", "4 cats", "KiB", "1e40", "nan", "99999999999999999999"}) {
        EXPECT_THROW(parse_bytes(text), Error) << text;
    }
}

TEST(Align, rounds_both_ways) {
    EXPECT_EQ(align_down(4097, 4096), 4096u);
    EXPECT_EQ(align_up(4097, 4096), 8192u);
    EXPECT_EQ(align_up(4096, 4096), 4096u);
}

TEST(Deadline, saturates_and_passes) {
    EXPECT_TRUE(Deadline::after(Clock::duration::max()).is_never());
    EXPECT_TRUE(Deadline::now().passed());
    EXPECT_EQ(Deadline::now().left().count(), 0);
    EXPECT_FALSE(Deadline::after(std::chrono::hours(1)).passed());
}

}  // namespace
}  // namespace penstock
