// Warps whose lanes want different pages of a small cache: every load comes, whatever the others hold.
#include <gtest/gtest.h>

#include <map>

#include "ondevice/warp_store_rig.hpp"

namespace penstock::ondevice {
namespace {

using Tallied = std::map<Status, u32>;

Tallied random_loads(WarpUsers& users, u32 turns) {
    Tallied seen;
    u32 wrong = 0;
    users.run([&](const WarpNumbers& numbers, u32 warp, u32 lane) {
        LaneDraws draws(users.plan.warps.seed, warp, lane);
        for (u32 turn = 0; turn < turns; ++turn) {
            const u64 index = draws.below(users.items());
            u64 value = 0;
            const Status status = numbers.load(index, value);
            const Unseen unseen;
            ++seen[status];
            const u64 page = index / WarpUsers::kPageItems, place = index % WarpUsers::kPageItems;
            if (status == Status::ok && value != word_of(page, place, 0)) ++wrong;
        }
    });
    EXPECT_EQ(wrong, 0u);
    EXPECT_TRUE(users.nothing_left());
    return seen;
}

struct LanesApart : testing::TestWithParam<std::tuple<u32, bool>> {
    WarpUsers::Plan plan(u64 seed) const {
        const auto [frames, loose] = GetParam();
        WarpUsers::Plan made;
        made.frames = frames;
        made.warps.loose = loose;
        made.warps.seed = seed;
        return made;
    }
};

TEST_P(LanesApart, load_what_the_disk_has_and_never_wait_for_each_other) {
    for (u64 seed = 1; seed <= 4; ++seed) {
        WarpUsers users(plan(seed));
        users.disk.pending_tests = 2;
        const Tallied expected{{Status::ok, 8 * 4 * 20}};
        EXPECT_EQ(random_loads(users, 20), expected) << "seed " << seed;
        std::printf("%llu steps\n", users.warps.steps());
    }
}

INSTANTIATE_TEST_SUITE_P(Caches, LanesApart, testing::Combine(testing::Values(1, 3, 6, 64), testing::Bool()));

TEST(LanesApartControl, hold_pages_and_wait_where_nothing_limits_them) {
    WarpUsers::Plan plan;
    plan.frames = 6;
    plan.together = ~0u;
    plan.wait_ms = 20;
    WarpUsers users(plan);
    Tallied seen = random_loads(users, 5);
    EXPECT_GT(seen[Status::all_pinned], 0u);
}

}  // namespace
}  // namespace penstock::ondevice
