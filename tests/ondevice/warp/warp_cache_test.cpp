// Warps whose lanes want different pages of a small cache: every page comes, whatever other lanes hold.
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "ondevice/warp/store_rig.hpp"

namespace penstock::ondevice {
namespace {

constexpr u32 kTurns = 12;

using Tallied = std::map<Status, u32>;

// All lanes load single items at random places; returns how the loads ended. A loaded item must be what the disk has.
Tallied random_loads(WarpUsers& users, u32 turns = kTurns) {
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
    EXPECT_EQ(users.settle(), Status::ok);
    EXPECT_EQ(wrong, 0u);
    EXPECT_TRUE(users.nothing_left());
    return seen;
}

// Every lane stores to items of its own, one by one and several at once, and reads them back. Lanes share pages, and a
// lane's items lie in several pages.
struct Stores {
    explicit Stores(WarpUsers& made) : users(made), known(made.items()) {
        for (u64 index = 0; index < known.size(); ++index)
            known[index] = word_of(index / WarpUsers::kPageItems, index % WarpUsers::kPageItems, 0);
    }

    void run(u32 turns) {
        const u64 own = users.items() / (users.plan.warps.warps * users.plan.warps.lanes);
        users.run([&](const WarpNumbers& numbers, u32 warp, u32 lane) {
            LaneDraws draws(users.plan.warps.seed, warp, lane);
            const u64 first = (u64{warp} * users.plan.warps.lanes + lane) * own;
            for (u32 turn = 1; turn <= turns; ++turn) {
                const u64 from = draws.below(own), most = draws.below(2) == 0 ? 1 : own - from;
                const Run part{first + from, most};
                draws.below(2) == 0 ? store(numbers, part, turn) : load(numbers, part);
            }
        });
    }
    void store(const WarpNumbers& numbers, const Run& run, u64 version) {
        std::vector<u64> items(run.items);
        for (u64 item = 0; item < run.items; ++item) items[item] = version << 32 | (run.first + item);
        const Status status = run.items == 1 ? numbers.store(run.first, items[0]) : numbers.copy_in(run, items.data());
        const Unseen unseen;
        ++seen[status];
        for (u64 item = 0; item < run.items; ++item) {
            u64& before = known[run.first + item];
            before = status == Status::ok ? items[item] : run.items == 1 ? before : kUnsure;
        }
    }
    void load(const WarpNumbers& numbers, const Run& run) {
        std::vector<u64> items(run.items);
        const Status status = run.items == 1 ? numbers.load(run.first, items[0]) : numbers.copy_out(run, items.data());
        const Unseen unseen;
        ++seen[status];
        for (u64 item = 0; item < run.items && status == Status::ok; ++item)
            if (known[run.first + item] != kUnsure && known[run.first + item] != items[item]) ++wrong;
    }
    // How many items are wrong on the disk after a flush.
    u32 lost() const {
        u32 lost = 0;
        for (u64 index = 0; index < known.size(); ++index)
            if (known[index] != kUnsure &&
                known[index] != users.disk.word(index / WarpUsers::kPageItems, index % WarpUsers::kPageItems))
                ++lost;
        return lost;
    }

    static constexpr u64 kUnsure = ~0ull;  // a store of several items failed on its way
    WarpUsers& users;
    std::vector<u64> known;
    Tallied seen;
    u32 wrong = 0;
};

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
    for (u64 seed = 1; seed <= 2; ++seed) {
        WarpUsers users(plan(seed));
        users.disk.pending_tests = 2;
        EXPECT_EQ(random_loads(users), (Tallied{{Status::ok, 8 * 4 * kTurns}})) << "seed " << seed;
    }
}

TEST_P(LanesApart, store_and_read_back_what_they_stored_through_write_backs) {
    for (u64 seed = 1; seed <= 2; ++seed) {
        WarpUsers users(plan(seed));
        users.disk.pending_tests = 1;
        Stores stores(users);
        stores.run(kTurns);
        EXPECT_EQ(stores.seen, (Tallied{{Status::ok, 8 * 4 * kTurns}})) << "seed " << seed;
        EXPECT_EQ(stores.wrong, 0u);
        EXPECT_EQ(users.flush(), Status::ok);
        EXPECT_EQ(stores.lost(), 0u);
        EXPECT_TRUE(users.nothing_left());
    }
}

TEST_P(LanesApart, hear_of_loads_that_fail_and_leave_nothing) {
    WarpUsers users(plan(7));
    users.disk.fail_load_each = 3;
    users.disk.pending_tests = 1;
    Tallied seen = random_loads(users);
    EXPECT_GT(seen[Status::ok], 0u);
    EXPECT_GT(seen[Status::io_error], 0u);
    EXPECT_EQ(seen[Status::ok] + seen[Status::io_error], 8 * 4 * kTurns);
}

TEST_P(LanesApart, lose_no_store_to_write_backs_that_fail) {
    WarpUsers users(plan(8));
    users.disk.fail_put_each = 2;
    Stores stores(users);
    stores.run(kTurns);
    EXPECT_EQ(stores.seen[Status::ok] + stores.seen[Status::io_error], 8 * 4 * kTurns);
    EXPECT_EQ(stores.wrong, 0u);
    users.disk.fail_put_each = 0;
    EXPECT_EQ(users.flush(), Status::ok);
    EXPECT_EQ(stores.lost(), 0u);
    EXPECT_TRUE(users.nothing_left());
}

TEST_P(LanesApart, end_at_the_deadline_where_the_store_never_answers) {
    WarpUsers::Plan made = plan(9);
    made.wait_ms = 1;
    WarpUsers users(made);
    users.disk.stalled = 1;
    u32 late = 0, others = 0;
    users.run([&](const WarpNumbers& numbers, u32, u32 lane) {
        u64 value = 0;
        const Status status = numbers.load(lane * WarpUsers::kPageItems, value);
        const Unseen unseen;
        ++(status == Status::timed_out ? late : others);
    });
    EXPECT_EQ(others, 0u);
    EXPECT_EQ(late, 32u);
    users.disk.stalled = 0;
    EXPECT_EQ(users.settle(), Status::ok);
    EXPECT_TRUE(users.nothing_left());
}

// All lanes of a warp copy and visit the same tiles together, between loads of their own.
TEST_P(LanesApart, share_tiles) {
    WarpUsers users(plan(10));
    users.disk.pending_tests = 2;
    constexpr u64 kTile = 200;
    u32 wrong = 0;
    std::vector<std::vector<u64>> tiles(users.plan.warps.warps, std::vector<u64>(kTile));
    users.run([&](const WarpNumbers& numbers, u32 warp, u32 lane) {
        const u32 lanes = users.plan.warps.lanes;
        LaneDraws together(3, warp, 0), own(4, warp, lane);
        const auto right = [](u64 index, u64 value) {
            return value == word_of(index / WarpUsers::kPageItems, index % WarpUsers::kPageItems, 0);
        };
        for (u32 turn = 0; turn < 6; ++turn) {
            const u64 first = together.below(users.items() - kTile), index = own.below(users.items());
            u32 bad = numbers.load_tile({first, kTile}, tiles[warp].data(), lane, lanes) == Status::ok ? 0 : 1;
            Warped::sync((1u << lanes) - 1);
            for (u64 item = 0; item < kTile; ++item) bad += right(first + item, tiles[warp][item]) ? 0 : 1;
            Warped::sync((1u << lanes) - 1);
            u64 visited = 0;
            const auto look = [&](const u64* items, u64 done, u64 count) {
                for (u64 item = lane; item < count; item += lanes)
                    if (!right(first + done + item, items[item])) ++bad;
                visited += count;
            };
            bad += numbers.visit_tile({first, kTile}, look) == Status::ok && visited == kTile ? 0 : 1;
            bad += right(index, numbers[index]) ? 0 : 1;
            const Unseen unseen;
            wrong += bad;
        }
    });
    EXPECT_EQ(wrong, 0u);
    EXPECT_TRUE(users.nothing_left());
}

// Lanes share a tile with a page that cannot be loaded: each gets the failure, and none waits for a lane that has left.
TEST_P(LanesApart, share_the_failure_of_a_tile) {
    WarpUsers users(plan(11));
    users.disk.fail_load_each = 5;
    users.disk.pending_tests = 1;
    Tallied seen;
    users.run([&](const WarpNumbers& numbers, u32 warp, u32) {
        LaneDraws together(3, warp, 0);
        for (u32 turn = 0; turn < 8; ++turn) {
            const Status status = numbers.visit_tile({together.below(users.items() - 200), 200},
                                                     [](const u64*, u64, u64) {});
            const Unseen unseen;
            ++seen[status];
        }
    });
    EXPECT_GT(seen[Status::ok], 0u);
    EXPECT_GT(seen[Status::io_error], 0u);
    EXPECT_TRUE(users.nothing_left());
}

INSTANTIATE_TEST_SUITE_P(Caches, LanesApart, testing::Combine(testing::Values(1, 3, 6, 64), testing::Bool()));

// The cache gives leave to wait with pages in hand up to its limit, and all leave comes back.
TEST(LeaveToWait, keeps_to_its_limit_and_is_given_back) {
    for (const u32 limit : {0u, 2u, 3u, 4u, 5u}) {
        for (const u32 fails : {0u, 3u}) {
            WarpUsers::Plan plan;
            plan.frames = 6;
            plan.together = limit;
            plan.warps.seed = 20 + limit;
            WarpUsers users(plan);
            users.disk.pending_tests = 2;
            users.disk.fail_load_each = fails;
            Tallied seen = random_loads(users);
            EXPECT_EQ(seen[Status::ok] + seen[Status::io_error], 8 * 4 * kTurns) << limit;
            EXPECT_EQ(seen[Status::io_error] != 0, fails != 0) << limit;
            EXPECT_LE(users.most_permits, limit);
            EXPECT_EQ(users.most_permits > 1, limit > 1);
        }
    }
}

TEST(LeaveToWait, is_half_of_what_is_never_pinned) {
    EXPECT_EQ(together_of(512, 448), 32u);
    EXPECT_EQ(together_of(6, 5), 0u);
    EXPECT_EQ(together_of(1, 1), 0u);
}

// The control: without the limit, lanes that wait come to hold all pages.
TEST(LeaveToWait, that_nothing_limits_ends_with_all_pages_held_by_who_waits) {
    WarpUsers::Plan plan;
    plan.frames = 6;
    plan.together = ~0u;
    WarpUsers users(plan);
    Tallied seen = random_loads(users, 3);
    EXPECT_GT(seen[Status::all_pinned], 0u);
}

// One warp, and the status that each lane gets.
struct OneWarp : testing::Test {
    using Told = std::vector<Status>;

    // Each lane asks for the page of its number, if it is among `lanes`, and gives it back.
    static Told told(WarpUsers& users, Lanes lanes) {
        Told said(4, Status::pending);
        const auto cache = users.cache();
        users.warps.run([&](u32, u32 lane) {
            if ((lanes >> lane & 1) == 0) return;
            u32 frame = kNoFrame;
            const Status status = cache.acquire(lane, kEver, frame);
            if (status == Status::ok) {
                EXPECT_EQ(word_in(cache.page(frame), 1), word_of(lane, 1, 0));
                cache.release(frame);
            }
            said[lane] = status;
        });
        EXPECT_TRUE(users.nothing_left());
        return said;
    }
    static WarpUsers::Plan plan(u32 together) {
        WarpUsers::Plan made;
        made.warps = {1, 4, 1, false};
        made.frames = 16;
        made.together = together;
        return made;
    }
    static constexpr Status ok = Status::ok, busy = Status::busy, none = Status::pending;
};

TEST_F(OneWarp, without_leave_takes_what_is_here_or_the_first_page_alone) {
    WarpUsers users(plan(3));
    EXPECT_EQ(told(users, 0b0001), (Told{ok, none, none, none}));
    EXPECT_EQ(told(users, 0b1111), (Told{ok, busy, busy, busy}));
    EXPECT_EQ(users.disk.loads, 1u);
    users.disk.fail_load_each = 2;
    users.plan.together = 0;
    EXPECT_EQ(told(users, 0b1110), (Told{none, Status::io_error, busy, busy}));
    EXPECT_EQ(told(users, 0b1110), (Told{none, ok, busy, busy}));
    EXPECT_EQ(users.disk.loads, 3u);
    EXPECT_EQ(users.most_permits, 0u);
}

TEST_F(OneWarp, with_leave_takes_all_at_once) {
    WarpUsers users(plan(4));
    EXPECT_EQ(told(users, 0b0010), (Told{none, ok, none, none}));
    EXPECT_EQ(told(users, 0b1111), (Told{ok, ok, ok, ok}));
    EXPECT_EQ(users.disk.loads, 4u);
    EXPECT_EQ(users.most_permits, 4u);
}

// Tests of the machine itself. On a GPU, values that lanes exchange at two places of the program are undefined.
void exchange(bool apart) {
    Warps one({1, 2, 1, false});
    one.run([&](u32, u32 lane) {
        u32 value = 0;
        if (apart && lane != 0) {  // what is around it keeps a compiler from making one place of the two
            asm volatile("# before");
            value = Warped::from(0b11, lane, 1);
            asm volatile("# after");
        } else {
            value = Warped::from(0b11, lane, 1);
        }
        const Unseen unseen;
        EXPECT_EQ(value, 1u);
    });
}

TEST(WarpsTest, lanes_exchange_values_at_one_place) { exchange(false); }

TEST(WarpsDeathTest, control_lanes_that_exchange_values_at_two_places_end_the_program) {
    EXPECT_DEATH(exchange(true), "lanes of one collective are at different places");
}

}  // namespace
}  // namespace penstock::ondevice
