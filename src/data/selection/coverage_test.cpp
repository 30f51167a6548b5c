// Numbers of boxes add up to that of their array only where they have each element once.
#include "data/selection/coverage.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace penstock::data {
namespace {

struct PlainBox {
    std::vector<std::uint64_t> start, count;
};

// The array, cut at random again and again.
std::vector<PlainBox> cut(const std::vector<std::uint64_t>& shape, int cuts, std::mt19937_64& chance) {
    std::vector<PlainBox> boxes{{std::vector<std::uint64_t>(shape.size()), shape}};
    for (int i = 0; i < cuts; ++i) {
        PlainBox& one = boxes[chance() % boxes.size()];
        const std::size_t axis = chance() % shape.size();
        PlainBox other = one;
        const std::uint64_t low = chance() % (one.count[axis] + 1);
        other.start[axis] += low;
        other.count[axis] -= low;
        one.count[axis] = low;
        boxes.push_back(other);
    }
    return boxes;
}

std::uint64_t sum_of(const std::vector<PlainBox>& boxes) {
    std::uint64_t sum = 0;
    for (const PlainBox& one : boxes) sum += coverage_of(one.start, one.count);
    return sum;
}

TEST(Coverage, of_boxes_that_divide_an_array_is_that_of_the_array) {
    std::mt19937_64 chance(3);
    for (const std::vector<std::uint64_t>& shape : std::vector<std::vector<std::uint64_t>>{{12}, {7, 9}, {4, 6, 5}}) {
        const std::uint64_t whole = coverage_of(std::vector<std::uint64_t>(shape.size()), shape);
        for (int round = 0; round < 50; ++round) {
            std::vector<PlainBox> boxes = cut(shape, round % 8, chance);
            EXPECT_EQ(sum_of(boxes), whole);
            PlainBox& one = boxes[chance() % boxes.size()];
            const std::size_t axis = chance() % shape.size();
            if (one.count[axis] == 0) continue;
            PlainBox kept = one;
            --one.count[axis];
            bool is_empty = false;
            for (const std::uint64_t each : kept.count) is_empty |= each == 0;
            EXPECT_EQ(sum_of(boxes) == whole, is_empty) << "a gap";
            one = kept;
            boxes.push_back(kept);
            EXPECT_EQ(sum_of(boxes) == whole, is_empty) << "an overlap";
        }
    }
}

TEST(Coverage, tells_a_gap_and_an_overlap_of_one_size) {
    const std::vector<PlainBox> moved{{{0, 0}, {4, 4}}, {{5, 0}, {4, 4}}};  // of (8, 4)
    EXPECT_NE(sum_of(moved), coverage_of(std::vector<std::uint64_t>{0, 0}, std::vector<std::uint64_t>{8, 4}));
    EXPECT_EQ(coverage_of({}, {}), 1u) << "one value";
}

}  // namespace
}  // namespace penstock::data
