// The order in which a gather takes its rows, by one thread and by several.
#include "ondevice/cache/row_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace penstock::ondevice {
namespace {

class RowOrderTest : public testing::TestWithParam<unsigned> {
  protected:
    static constexpr u32 kRegions = 40, kShift = 8;

    explicit RowOrderTest(u64 rows = 20'000) : rows_(rows), places_(rows, ~0u), ends_(kRegions + 1) {
        std::mt19937_64 random(11);
        for (u64& row : rows_) row = random() % ((u64{kRegions} << kShift) + 1000);  // some are not there
        order_ = {places_.data(), ends_.data(), kRegions, kShift};
    }

    void put_in_order() {
        std::barrier step(GetParam());
        std::vector<std::jthread> threads;
        for (u64 me = 0; me < GetParam(); ++me) {
            threads.emplace_back([&, me] {
                order_.count(rows_.data(), rows_.size(), me, GetParam());
                step.arrive_and_wait();
                order_.begin(me, GetParam());
                step.arrive_and_wait();
                order_.place(rows_.data(), rows_.size(), me, GetParam());
            });
        }
    }

    std::vector<u64> rows_;
    std::vector<u32> places_, ends_;
    RowOrder<Native> order_;
};

TEST_P(RowOrderTest, each_row_of_the_list_has_one_turn) {
    put_in_order();
    std::vector<u64> turns(rows_.size()), all(rows_.size());
    for (u64 turn = 0; turn < turns.size(); ++turn) turns[turn] = order_.row(turn);
    std::sort(turns.begin(), turns.end());
    std::iota(all.begin(), all.end(), u64{0});
    EXPECT_EQ(turns, all);
}

TEST_P(RowOrderTest, rows_of_a_region_are_together) {
    put_in_order();
    std::vector<u32> regions;
    for (u64 turn = 0; turn < rows_.size(); ++turn) {
        const u32 region = order_.region_of(rows_[order_.row(turn)]);
        if (regions.empty() || regions.back() != region) regions.push_back(region);
    }
    EXPECT_EQ(regions.size(), kRegions);
    std::sort(regions.begin(), regions.end());
    EXPECT_EQ(std::unique(regions.begin(), regions.end()), regions.end()) << "a region came twice";
}

INSTANTIATE_TEST_SUITE_P(Threads, RowOrderTest, testing::Values(1u, 2u, 5u));

TEST(RowOrder, without_places_is_that_of_the_list) {
    const RowOrder<Native> none;
    EXPECT_EQ(none.row(7), 7u);
}

}  // namespace
}  // namespace penstock::ondevice
