// BusyLimit in a closed loop with workers and a copy engine, both simulated slot by slot.
#include "engine/workers/busy_limit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace penstock::engine {
namespace {

struct Trial {
    double idle_fraction = 0;        // of the engine, over the second half
    std::vector<std::uint32_t> limits;  // at each slot
};

// Time is counted in copies of one slot. A worker alone would need `worker_time(slot)` for a slot.
template <typename WorkerTime>
Trial simulate(BusyLimit& limit, const WorkerTime& worker_time, std::size_t rounds) {
    constexpr std::size_t kSlots = 6;
    Trial run;
    std::vector<double> ends(rounds, 0);  // of the copies
    double now = 0, idle = 0;
    for (std::size_t i = 0; i < rounds; ++i) {
        if (i >= kSlots) now = std::max(now, ends[i - kSlots]);  // until its slot is free
        const auto queued = [&] {
            std::size_t count = 0;
            for (std::size_t k = 0; k < i; ++k) count += ends[k] > now;
            return count;
        };
        limit.opened(queued());
        run.limits.push_back(limit.value());
        now += worker_time(i) / limit.value();
        limit.filled(queued() + 1);
        const double start = std::max(now, i > 0 ? ends[i - 1] : 0);
        if (i > 0 && start > ends[i - 1]) {
            limit.engine_waited();
            if (i > rounds / 2) idle += start - ends[i - 1];
        }
        ends[i] = start + 1;
    }
    run.idle_fraction = idle / (ends.back() - ends[rounds / 2]);
    return run;
}

TEST(BusyLimit, starts_with_all_and_settles_at_what_the_engine_needs_and_at_half_when_that_is_less) {
    for (const double needed : {5.5, 8.5, 10.5, 13.5}) {
        BusyLimit limit(16, 6);
        EXPECT_EQ(limit.value(), 16u);
        const Trial run = simulate(limit, [&](std::size_t) { return needed; }, 400);
        EXPECT_LT(run.idle_fraction, 0.01) << needed;
        double mean = 0;
        for (std::size_t i = 200; i < 400; ++i) mean += run.limits[i] / 200.0;
        EXPECT_GE(mean, std::max(needed, 8.0) - 1) << needed;
        EXPECT_LE(mean, std::max(needed, 8.0) + 2) << needed;
    }
}

TEST(BusyLimit, takes_workers_back_when_they_become_slow) {
    BusyLimit limit(16, 6);
    const auto worker_time = [](std::size_t slot) { return slot < 200 ? 6.0 : 12.0; };
    const Trial run = simulate(limit, worker_time, 600);
    EXPECT_EQ(run.limits[199], 8u);
    EXPECT_GE(run.limits[230], 11u);
    EXPECT_LT(run.idle_fraction, 0.01);
}

// The control: as few workers as the limit goes down to would starve the engine.
TEST(BusyLimit, does_not_fall_below_half_and_that_few_would_starve_a_fast_engine) {
    BusyLimit few(4, 6);
    EXPECT_GT(simulate(few, [](std::size_t) { return 8.0; }, 400).idle_fraction, 0.4);
    for (const std::uint32_t workers : {1u, 2u, 3u, 5u, 16u}) {
        BusyLimit slow_engine(workers, 6);
        EXPECT_EQ(slow_engine.value(), workers);
        EXPECT_EQ(simulate(slow_engine, [](std::size_t) { return 0.2; }, 400).limits.back(), (workers + 1) / 2);
    }
}

TEST(BusyLimit, takes_all_when_even_they_are_too_slow) {
    BusyLimit limit(16, 6);
    EXPECT_EQ(simulate(limit, [](std::size_t) { return 30.0; }, 400).limits.back(), 16u);
}

}  // namespace
}  // namespace penstock::engine
