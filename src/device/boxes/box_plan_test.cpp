// Runs what a GPU does with boxes on the CPU: plans, units and lanes one after the other, compared with the reference.
// The arrays end where the boxes end, so that the address sanitizer notices a lane that leaves them.
#include "device/boxes/box_plan.hpp"

#include <gtest/gtest.h>

#include "conformance/box_reference.hpp"
#include "penstock/error.hpp"
#include "support/sanitized.hpp"

namespace penstock::device {
namespace {

using conformance::BoxTrial;
using conformance::random_boxes;
using conformance::ReferenceBox;

std::vector<unsigned char> random_bytes(std::mt19937_64& random, std::uint64_t bytes) {
    std::vector<unsigned char> out(bytes);
    for (auto& byte : out) byte = static_cast<unsigned char>(random());
    return out;
}

// Moves boxes as the kernel does, with the units of all warps in the order of their numbers.
void play(std::span<const Box> boxes) {
    std::vector<BoxWork> works;
    std::vector<std::uint64_t> first_units{0};
    for (const Box& box : simplified(boxes)) {
        works.push_back(plan_box(box));
        first_units.push_back(first_units.back() + units_of(works.back()));
    }
    for (std::uint64_t unit = 0; unit < first_units.back(); ++unit) {
        const std::uint32_t i = find_box(first_units.data(), static_cast<std::uint32_t>(works.size()), unit);
        for (unsigned lane = 0; lane < kBoxLanes; ++lane) move_unit(works[i], unit - first_units[i], lane);
    }
}

void expect_same(std::mt19937_64& random, const BoxTrial& trial) {
    std::uint64_t to_bytes = 0, from_bytes = 0;
    const auto boxes = random_boxes(random, trial, to_bytes, from_bytes);
    const auto source = random_bytes(random, from_bytes);
    std::vector<unsigned char> expected(to_bytes, 0xA5), got = expected;
    std::vector<Box> placed;
    for (const ReferenceBox& one : boxes) {
        one.move(expected, source);
        placed.push_back(one.at(got.data(), source.data()));
    }
    play(placed);
    const auto differs = std::mismatch(got.begin(), got.end(), expected.begin());
    ASSERT_TRUE(differs.first == got.end())
        << testing::PrintToString(trial) << ": byte " << differs.first - got.begin();
}

TEST(BoxPlan, lanes_move_what_the_reference_moves) {
    std::mt19937_64 random(21);
    for (const std::uint32_t swap : {0u, 2u, 4u, 8u, 16u}) {
        for (const std::uint64_t alignment : {1u, 2u, 4u, 8u, 16u}) {
            for (const auto& [item, extent, dimensions, boxes] :
                 {std::tuple{16u, 6u, 6u, 12}, {64u, 40u, 2u, 12}, {200u, 9u, 3u, 6}, {700u, 9u, 2u, 6},
                  {20'000u, 3u, 2u, 3}, {16u, 900u, 1u, 6}}) {
                expect_same(random, {item, extent, dimensions, alignment, swap, test::some_of(boxes)});
                if (testing::Test::HasFatalFailure()) return;
            }
        }
    }
}

TEST(BoxPlan, rows_are_read_and_written_within_their_bytes) {
    std::mt19937_64 random(22);
    for (const std::uint64_t row : {128u, 129u, 143u, 511u, 512u, 1000u, 8192u, 8193u, 8200u, 30'001u}) {
        for (std::uint64_t to_skew = 0; to_skew < 17; ++to_skew) {
            const std::uint64_t from_skew = random() % 16;
            const auto source = random_bytes(random, from_skew + row);
            std::vector<unsigned char> got(to_skew + row, 0xA5);
            Box box{.destination = got.data() + to_skew, .source = source.data() + from_skew, .item_bytes = row};
            play(std::vector<Box>{box});
            ASSERT_TRUE(std::equal(got.begin() + static_cast<long>(to_skew), got.end(),
                                   source.begin() + static_cast<long>(from_skew)))
                << row << " to " << to_skew << " from " << from_skew;
            ASSERT_EQ(std::count(got.begin(), got.begin() + static_cast<long>(to_skew), 0xA5),
                      static_cast<long>(to_skew));
        }
    }
}

TEST(BoxPlan, words_are_swapped_in_place_at_any_alignment) {
    std::mt19937_64 random(23);
    for (const std::uint32_t word : {2u, 4u, 8u, 16u}) {
        for (std::uint64_t skew = 0; skew < 16; ++skew) {
            auto got = random_bytes(random, skew + 1001 * word);
            auto expected = got;
            for (std::uint64_t at = skew; at < expected.size(); at += word) {
                std::reverse(expected.begin() + static_cast<long>(at), expected.begin() + static_cast<long>(at + word));
            }
            unsigned char* start = got.data() + skew;
            play(std::vector<Box>{{.destination = start, .source = start, .item_bytes = 1001 * word,
                                   .swap_bytes = word}});
            ASSERT_EQ(got == expected, true) << word << " at " << skew;
        }
    }
}

TEST(BoxPlan, takes_the_widest_access_that_all_of_a_box_allows) {
    alignas(16) static unsigned char memory[4096];
    const auto plan = [](std::uint64_t to, std::uint64_t from, std::uint64_t item, std::int64_t stride) {
        Box box{.destination = memory + to, .source = memory + from, .item_bytes = item, .dimensions = 1};
        box.extents[0] = 2;
        box.destination_strides[0] = 1024;
        box.source_strides[0] = stride;
        return plan_box(box);
    };
    EXPECT_EQ(plan(0, 0, 64, 256).element_bytes, 16);
    EXPECT_EQ(plan(0, 8, 64, 256).element_bytes, 8);
    EXPECT_EQ(plan(4, 0, 60, 256).element_bytes, 4);
    EXPECT_EQ(plan(0, 0, 14, 258).element_bytes, 2);
    EXPECT_EQ(plan(0, 0, 13, 256).element_bytes, 1);
    EXPECT_EQ(plan(0, 0, 63, 256).element_bytes, 0) << "by windows";
    EXPECT_EQ(plan(4, 0, 64, 256).element_bytes, 0) << "by windows";
}

TEST(BoxPlan, a_huge_box_is_cut_into_units_of_like_size) {
    static unsigned char memory[16];
    for (const std::uint64_t odd : {0u, 1u}) {
        Box box{.destination = memory, .source = memory + odd, .item_bytes = 1ull << 42};
        const BoxWork work = plan_box(box);
        EXPECT_GE(units_of(work), (1ull << 42) / (16 * kKiB));
        EXPECT_LE(units_of(work), (1ull << 42) / (1 * kKiB));
    }
}

TEST(BoxPlan, the_box_of_every_unit_is_found) {
    const std::uint64_t first_units[] = {0, 1, 2, 7, 1ull << 40, (1ull << 40) + 3};
    const std::pair<std::uint64_t, std::uint32_t> expected[] = {
        {0, 0}, {1, 1}, {2, 2}, {6, 2}, {7, 3}, {(1ull << 40) - 1, 3}, {1ull << 40, 4}, {(1ull << 40) + 2, 4}};
    for (const auto& [unit, box] : expected) EXPECT_EQ(find_box(first_units, 5, unit), box) << unit;
    EXPECT_EQ(find_box(first_units, 1, 0), 0u);
}

TEST(BoxPlan, a_box_without_a_source_is_refused) {
    static unsigned char memory[16];
    EXPECT_THROW(simplified(std::vector<Box>{{.destination = memory}}), Error);
}

}  // namespace
}  // namespace penstock::device
