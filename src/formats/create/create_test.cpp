// Tests of new files: schemas, and what readers find after each write of a file that grows.
#include <gtest/gtest.h>

#include <cstring>

#include "formats/create/schema.hpp"

namespace penstock::formats {
namespace {

TEST(Schema, TextIsBytesOfFixedLength) {
    const NewAttribute made = text_attribute("units", "K");
    EXPECT_EQ(made.type.kind, 'S');
    EXPECT_EQ(made.type.item_bytes, 1U);
    EXPECT_TRUE(made.shape.empty());
    ASSERT_EQ(made.bytes.size(), 1U);
    EXPECT_EQ(static_cast<char>(made.bytes[0]), 'K');
}

TEST(Schema, NumbersKeepTheirTypeAndBytes) {
    const double values[] = {1.5, -2.0};
    const NewAttribute made = numbers_attribute("range", values);
    EXPECT_EQ(made.type.name, "float64");
    ASSERT_EQ(made.shape, std::vector<std::uint64_t>{2});
    ASSERT_EQ(made.bytes.size(), sizeof values);
    EXPECT_EQ(std::memcmp(made.bytes.data(), values, sizeof values), 0);
    EXPECT_EQ(number_attribute("n", 7).type.name, "int32");
    EXPECT_EQ(number_attribute("n", 7.0F).bytes.size(), 4U);
}

}  // namespace
}  // namespace penstock::formats
