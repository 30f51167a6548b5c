// Items on all cores: each is taken once, and what a worker throws or finds is told.
#include "data/cores/on_cores.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace penstock::data {
namespace {

struct Taken final : ItemWorker {
    explicit Taken(std::vector<std::atomic<int>>& times) : times_(times) {}
    std::string take(std::size_t item) override {
        if (times_[item].fetch_add(1) < 0) throw std::runtime_error("as it was told");
        return item == times_.size() - 1 ? "the last one" : "";
    }
    std::vector<std::atomic<int>>& times_;
};

CoreResult take_all(std::vector<std::atomic<int>>& times, unsigned threads) {
    return on_cores({times.size(), 100, 1}, [&] { return std::make_unique<Taken>(times); }, {.threads = threads});
}

TEST(OnCores, each_item_is_taken_once_and_a_fault_is_told) {
    for (const unsigned threads : {1u, 2u, 8u}) {
        std::vector<std::atomic<int>> times(1000);
        const CoreResult result = take_all(times, threads);
        for (const std::atomic<int>& one : times) EXPECT_EQ(one.load(), 1);
        ASSERT_TRUE(result.fault);
        EXPECT_EQ(*result.fault, (std::pair<std::size_t, std::string>(999, "the last one")));
        EXPECT_EQ(result.done, 999u);
    }
}

TEST(OnCores, what_a_worker_throws_is_thrown) {
    std::vector<std::atomic<int>> times(1000);
    times[500] = -1;
    EXPECT_THROW(take_all(times, 4), std::runtime_error);
}

}  // namespace
}  // namespace penstock::data
