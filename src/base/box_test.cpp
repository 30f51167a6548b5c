// The arithmetic of boxes: simplification to the fewest dimensions, and refusal of invalid numbers.
#include "penstock/box.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "penstock/error.hpp"

namespace penstock {
namespace {

std::byte memory[4096], other[4096];

std::vector<Box> split(std::uint64_t item_bytes, const std::vector<BoxDimension>& dimensions, std::uint32_t swap = 0) {
    Box item{.destination = memory + 2048, .source = other + 2048, .item_bytes = item_bytes, .swap_bytes = swap};
    std::vector<Box> boxes;
    split_box(item, dimensions, [&](const Box& box) { boxes.push_back(box); });
    return boxes;
}

std::string refusal(std::uint64_t item_bytes, const std::vector<BoxDimension>& dimensions, std::uint32_t swap = 0) {
    try {
        split(item_bytes, dimensions, swap);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
        return error.what();
    }
    return "accepted";
}

TEST(Box, contiguous_dimensions_become_one_item) {
    const auto boxes = split(4, {{3, 80, 80}, {4, 20, 20}, {5, 4, 4}});
    ASSERT_EQ(boxes.size(), 1u);
    EXPECT_EQ(boxes[0].dimensions, 0u);
    EXPECT_EQ(boxes[0].item_bytes, 240u);
    EXPECT_EQ(boxes[0].bytes(), 240u);
}

TEST(Box, dimensions_that_continue_each_other_on_both_sides_merge) {
    const auto boxes = split(4, {{3, 200, 160}, {4, 40, 40}, {5, 8, 4}});
    ASSERT_EQ(boxes.size(), 1u);
    ASSERT_EQ(boxes[0].dimensions, 3u);
    const auto merged = split(4, {{3, 160, 160}, {4, 40, 40}, {5, 8, 8}});
    ASSERT_EQ(merged[0].dimensions, 1u);
    EXPECT_EQ(merged[0].extents[0], 60u);
    EXPECT_EQ(merged[0].destination_strides[0], 8);
}

TEST(Box, extents_of_one_vanish_and_an_extent_of_zero_leaves_nothing) {
    EXPECT_EQ(split(8, {{1, -5, 3}, {1, 0, 0}})[0].dimensions, 0u);
    EXPECT_EQ(split(8, {})[0].bytes(), 8u);
    EXPECT_TRUE(split(8, {{3, 0, 0}, {0, 1, 1}}).empty());
}

TEST(Box, a_reversed_destination_is_walked_from_its_other_end) {
    const auto boxes = split(2, {{10, -2, 2}});
    ASSERT_EQ(boxes.size(), 1u);
    EXPECT_EQ(boxes[0].destination, memory + 2048 - 18);
    EXPECT_EQ(boxes[0].source, other + 2048 + 18);
    EXPECT_EQ(boxes[0].destination_strides[0], 2);
    EXPECT_EQ(boxes[0].source_strides[0], -2);
    EXPECT_EQ(split(2, {{10, -2, -2}})[0].item_bytes, 20u);  // both reversed: a plain copy
}

TEST(Box, the_order_of_dimensions_does_not_matter) {
    EXPECT_EQ(split(4, {{5, 4, 4}, {3, 80, 80}, {4, 20, 20}})[0].item_bytes, 240u);
}

TEST(Box, more_dimensions_than_a_box_has_become_boxes_of_the_largest) {
    std::vector<BoxDimension> dimensions;
    std::int64_t stride = 1;
    for (const std::uint64_t extent : {2u, 3u, 2u, 2u, 3u, 2u, 2u, 2u}) {
        dimensions.push_back({extent, 2 * stride, 2 * stride + 1});
        stride *= 4;
    }
    dimensions[3].source_stride = -3;
    const auto boxes = split(1, dimensions);
    EXPECT_EQ(boxes.size(), 4u);
    std::uint64_t items = 0;
    for (const Box& box : boxes) {
        EXPECT_EQ(box.dimensions, 6u);
        EXPECT_TRUE(std::is_sorted(box.destination_strides.rbegin(), box.destination_strides.rend()));
        items += box.bytes();
    }
    EXPECT_EQ(items, 2u * 3 * 2 * 2 * 3 * 2 * 2 * 2);
}

TEST(Box, what_makes_no_sense_is_refused_with_its_reason) {
    EXPECT_NE(refusal(0, {}).find("0 bytes"), std::string::npos);
    EXPECT_NE(refusal(4, {}, 3).find("2, 4, 8 or 16"), std::string::npos);
    EXPECT_NE(refusal(12, {}, 8).find("whole number of words"), std::string::npos);
    EXPECT_NE(refusal(4, {{2, 0, 4}}).find("overlap"), std::string::npos);
    EXPECT_NE(refusal(4, {{2, 3, 4}}).find("overlap"), std::string::npos);
    EXPECT_NE(refusal(4, {{3, 8, 8}, {3, 4, 4}}).find("overlap"), std::string::npos);
    EXPECT_NE(refusal(1, std::vector<BoxDimension>(65, {1, 0, 0})).find("65 dimensions"), std::string::npos);
    Box box;
    box.dimensions = 7;
    EXPECT_THROW(simplify_box(box, [](const Box&) {}), Error);
    box.dimensions = 0;
    EXPECT_THROW(simplify_box(box, [](const Box&) {}), Error) << "null";
    EXPECT_EQ(refusal(4, {{2, 4, 0}}), "accepted") << "one source may be read often";
}

TEST(Box, numbers_that_leave_the_address_space_are_refused) {
    constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
    constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
    for (const auto& dimensions : std::vector<std::vector<BoxDimension>>{{{3, kMost, 1}},
                                                                        {{2, 1, kLeast}},
                                                                        {{2, kMost, 1}},
                                                                        {{1ull << 63, 1, 0}},
                                                                        {{~0ull, 1, 1}},
                                                                        {{2, kMost / 2, 0}, {2, kMost / 2, 0}}}) {
        EXPECT_NE(refusal(4, dimensions).find("leave the address space"), std::string::npos);
    }
    EXPECT_NE(refusal(~0ull, {}).find("leave the address space"), std::string::npos);
    EXPECT_EQ(refusal(4, {{1, kLeast, kLeast}}), "accepted") << "a stride that is never taken";
}

TEST(Box, spans_say_what_a_side_touches) {
    const std::uint64_t extents[] = {3, 4};
    const std::int64_t strides[] = {-100, 8};
    const ByteSpan span = byte_span(4, extents, strides);
    EXPECT_EQ(span.low, -200);
    EXPECT_EQ(span.high, 28);
    EXPECT_EQ(span.bytes(), 228u);
    const std::uint64_t none[] = {3, 0};
    EXPECT_EQ(byte_span(4, none, strides).bytes(), 0u);
}

}  // namespace
}  // namespace penstock
