// The pool of paths and slots: the budget holds, a worker uses its idle ones again for every shape that they have the
// room for, and a worker that finds no room waits.
#include "engine/workers/pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "engine/workers/worker_path.hpp"
#include "path/memory_store.hpp"

namespace penstock::engine {
namespace {

class Pool : public testing::Test {
  protected:
    std::shared_ptr<Device> device_ = make_host_device();
    std::shared_ptr<path::MemoryStore> store_ = std::make_shared<path::MemoryStore>();
    std::atomic<int> paths_made_{0};
    EngineOptions options() {
        EngineOptions options;
        options.device = device_.get();
        options.make_path = [this](PathKind kind, PathOptions path_options) {
            ++paths_made_;
            path_options.store = store_;
            return make_path(kind == PathKind::memory ? kind : PathKind::null, path_options);
        };
        return options;
    }
    static Shape shape(std::uint64_t chunk_bytes, std::uint32_t depth) {
        return {.path = PathKind::null, .chunk_bytes = chunk_bytes, .depth = depth};
    }
    static bool never() { return false; }
    static bool at_once() { return true; }
};

TEST_F(Pool, a_returned_path_and_its_slots_serve_the_same_worker_again) {
    EnginePool pool(options(), 64 * kMiB);
    auto path = pool.lease(shape(1 * kMiB, 4), 0, never);
    const StagingSlots& slots = *path->slots();
    const std::byte* slot = slots.slot(0);
    EXPECT_EQ(slots.slot(1) - slots.slot(0), static_cast<std::ptrdiff_t>(1 * kMiB));
    pool.give_back(std::move(path));
    EXPECT_EQ(pool.lease(shape(1 * kMiB, 4), 0, never)->slots()->slot(0), slot);
    EXPECT_EQ(paths_made_, 1);
}

TEST_F(Pool, slots_serve_every_shape_that_they_have_the_room_for) {
    EnginePool pool(options(), 64 * kMiB);
    auto path = pool.lease(shape(256 * kKiB, 16), 0, never);
    const std::span<std::byte> memory = path->blocks().front();
    pool.give_back(std::move(path));
    for (const std::uint64_t chunk_bytes : {64 * kKiB, 128 * kKiB, 256 * kKiB}) {
        for (const std::uint32_t depth : {1u, 8u, 16u}) {
            for (const Direction direction : {Direction::read, Direction::write}) {
                Shape other = shape(chunk_bytes, depth);
                other.direction = direction;
                other.staged = depth != 1;
                path = pool.lease(other, 0, never);
                const StagingSlots& slots = *path->slots();
                EXPECT_EQ(slots.shape(), other);
                const std::byte* end = slots.slot(depth - 1) + chunk_bytes;
                EXPECT_TRUE(slots.slot(0) == memory.data() && end <= memory.data() + memory.size());
                EXPECT_TRUE(slots.all_free() && slots.has_free());
                pool.give_back(std::move(path));
            }
        }
    }
    EXPECT_EQ(paths_made_, 1);
    pool.give_back(pool.lease(shape(256 * kKiB, 32), 0, never));  // more slots than there is memory for
    EXPECT_EQ(paths_made_, 2);
}

TEST_F(Pool, a_small_shape_leaves_large_slots_to_others) {
    EnginePool pool(options(), 128 * kMiB);
    pool.give_back(pool.lease(shape(4 * kMiB, 16), 0, never));
    const auto small = pool.lease(shape(64 * kKiB, 8), 0, never);
    EXPECT_EQ(small->bytes(), 2 * kMiB);
    EXPECT_EQ(paths_made_, 2);
}

TEST_F(Pool, a_path_serves_no_more_operations_than_it_was_made_for) {
    EnginePool pool(options(), 64 * kMiB);
    for (const PathKind path : {PathKind::memory, PathKind::null}) {
        paths_made_ = 0;
        Shape large = shape(1 * kMiB, 4);
        Shape small = shape(64 * kKiB, 8);  // its chunks hold many operations
        large.path = small.path = path;
        pool.give_back(pool.lease(large, 0, never));
        pool.give_back(pool.lease(small, 0, never));
        pool.give_back(pool.lease(large, 0, never));
        EXPECT_EQ(paths_made_, path == PathKind::memory ? 2 : 1);  // null has no queue
    }
}

TEST_F(Pool, what_holds_no_memory_is_not_dropped_to_make_room) {
    EnginePool pool(options(), 8 * kMiB);
    Shape straight = shape(1 * kMiB, 4);
    straight.staged = false;
    pool.give_back(pool.lease(straight, 0, never));
    auto all = pool.lease(shape(2 * kMiB, 4), 1, never);
    EXPECT_EQ(pool.lease(shape(2 * kMiB, 2), 0, at_once), nullptr);
    pool.give_back(pool.lease(straight, 0, never));
    EXPECT_EQ(paths_made_, 2);
}

TEST_F(Pool, another_worker_or_shape_gets_its_own) {
    EnginePool pool(options(), 64 * kMiB);
    pool.give_back(pool.lease(shape(1 * kMiB, 4), 0, never));
    pool.give_back(pool.lease(shape(1 * kMiB, 4), 1, never));
    pool.give_back(pool.lease(shape(2 * kMiB, 4), 1, never));
    EXPECT_EQ(paths_made_, 3);
    EXPECT_EQ(pool.held_bytes(), 16 * kMiB);
}

TEST_F(Pool, idle_slots_make_room_before_the_budget_breaks) {
    EnginePool pool(options(), 8 * kMiB);
    pool.give_back(pool.lease(shape(1 * kMiB, 4), 0, never));
    pool.give_back(pool.lease(shape(2 * kMiB, 4), 0, never));
    EXPECT_EQ(pool.peak_bytes(), 8 * kMiB);
    EXPECT_EQ(pool.held_bytes(), 8 * kMiB);
}

TEST_F(Pool, the_least_recently_used_slots_make_room_first_whether_a_workers_or_a_teams) {
    for (const bool teams_first : {false, true}) {
        EnginePool pool(options(), 8 * kMiB);
        const Shape half = shape(1 * kMiB, 4);
        auto path = pool.lease(half, 0, never);
        auto slots = pool.lease_slots(half, never);
        const std::byte* const own = path->blocks().front().data();
        const std::byte* const teams = slots->blocks().front().data();
        if (teams_first) pool.give_back(std::move(slots));
        pool.give_back(std::move(path));
        if (!teams_first) pool.give_back(std::move(slots));
        const auto next = pool.lease(half, 1, never);
        EXPECT_EQ(next->blocks().front().data(), teams_first ? teams : own);
    }
}

TEST_F(Pool, a_worker_that_finds_no_room_waits_for_it_or_gives_up) {
    EnginePool pool(options(), 8 * kMiB);
    auto path = pool.lease(shape(2 * kMiB, 3), 0, never);
    EXPECT_EQ(pool.lease(shape(2 * kMiB, 2), 1, at_once), nullptr);
    EXPECT_EQ(pool.lease_slots(shape(2 * kMiB, 2), at_once), nullptr);
    std::thread later([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        pool.give_back(std::move(path));
    });
    EXPECT_NE(pool.lease(shape(2 * kMiB, 2), 1, never), nullptr);
    later.join();
    EXPECT_LE(pool.peak_bytes(), 8 * kMiB);
}

TEST_F(Pool, a_worker_that_waits_for_room_gets_the_slots_that_came_back) {
    EnginePool pool(options(), 8 * kMiB);
    auto path = pool.lease(shape(2 * kMiB, 4), 0, never);
    const std::byte* slot = path->slots()->slot(0);
    std::atomic<bool> waits{false};
    std::thread later([&] {
        while (!waits) std::this_thread::yield();
        pool.give_back(std::move(path));
    });
    const auto asked = [&] {
        waits = true;
        return false;
    };
    EXPECT_EQ(pool.lease(shape(2 * kMiB, 4), 0, asked)->slots()->slot(0), slot);
    later.join();
    EXPECT_EQ(paths_made_, 1);
}

TEST_F(Pool, slots_of_other_paths_use_memory_that_is_registered_already) {
    EnginePool pool(options(), 8 * kMiB);
    auto path = pool.lease(shape(2 * kMiB, 4), 0, never);
    const std::byte* slot = path->slots()->slot(0);
    pool.give_back(std::move(path));
    Shape other = shape(1 * kMiB, 2);
    other.path = PathKind::memory;
    EXPECT_EQ(pool.lease(other, 0, never)->slots()->slot(0), slot);
    EXPECT_EQ(paths_made_, 2);
    EXPECT_EQ(pool.held_bytes(), 8 * kMiB);
}

TEST_F(Pool, memory_of_a_path_that_hung_is_not_used_again) {
    EnginePool pool(options(), 8 * kMiB);
    auto hung = pool.lease(shape(2 * kMiB, 2), 0, never);
    auto other = pool.lease(shape(2 * kMiB, 2), 1, never);
    const std::byte* slot = hung->slots()->slot(0);
    pool.drop(std::move(hung));
    EXPECT_FALSE(device_->pointer_info(slot).known);
    EXPECT_TRUE(device_->pointer_info(other->slots()->slot(0)).known);
    EXPECT_EQ(pool.held_bytes(), 4 * kMiB);
}

TEST_F(Pool, a_path_that_cannot_be_made_gives_its_room_back) {
    EngineOptions broken = options();
    broken.make_path = [](PathKind, PathOptions) -> std::unique_ptr<Path> {
        throw Error(ErrorCode::unsupported, "make path", "not here");
    };
    EnginePool pool(broken, 8 * kMiB);
    EXPECT_THROW(pool.lease(shape(1 * kMiB, 4), 0, never), Error);
    EXPECT_EQ(pool.held_bytes(), 0u);
}

TEST_F(Pool, more_than_the_whole_budget_is_refused_not_waited_for) {
    EnginePool pool(options(), 8 * kMiB);
    EXPECT_THROW(pool.lease(shape(4 * kMiB, 4), 0, never), Error);
    EXPECT_THROW(pool.lease_slots(shape(4 * kMiB, 4), never), Error);
}

TEST_F(Pool, the_number_of_workers_makes_no_other_path) {
    EnginePool pool(options(), 64 * kMiB);
    Shape four = shape(1 * kMiB, 4);
    four.workers = 4;
    pool.give_back(pool.lease(four, 0, never));
    Shape eight = four;
    eight.workers = 8;
    const auto again = pool.lease(eight, 0, never);
    EXPECT_EQ(paths_made_, 1);
    EXPECT_EQ(again->slots()->shape(), eight);
}

TEST_F(Pool, a_team_leases_slots_without_a_path_and_its_members_paths_without_slots) {
    EnginePool pool(options(), 64 * kMiB);
    Shape shared = shape(4 * kMiB, 4);
    shared.part_bytes = 1 * kMiB;
    auto slots = pool.lease_slots(shared, never);
    const std::byte* slot = slots->slot(0);
    pool.give_back(std::move(slots));
    shared.path = PathKind::buffered;
    EXPECT_EQ(pool.lease_slots(shared, never)->slot(0), slot);
    EXPECT_EQ(paths_made_, 0);
    for (const std::uint64_t chunk_bytes : {4 * kMiB, 64 * kKiB}) {  // a member's path serves slots of any size
        shared.chunk_bytes = chunk_bytes;
        auto member = pool.lease_path(shared, 7);
        EXPECT_EQ(member->slots(), nullptr);
        pool.give_back(std::move(member));
    }
    EXPECT_EQ(paths_made_, 1);
    const auto alone = pool.lease(shared, 7, never);
    EXPECT_NE(alone->slots(), nullptr);
    EXPECT_EQ(paths_made_, 2);
}

TEST_F(Pool, a_teams_slots_begin_with_two_and_get_the_others_in_blocks_that_are_kept) {
    EnginePool pool(options(), 128 * kMiB);
    Shape shared = shape(16 * kMiB, 6);
    shared.part_bytes = 1 * kMiB;
    auto slots = pool.lease_slots(shared, never);
    EXPECT_EQ(slots->bytes(), 32 * kMiB);
    std::vector<const std::byte*> all;
    for (std::uint64_t missing = slots->missing_bytes(); missing != 0; missing = slots->missing_bytes()) {
        EXPECT_EQ(missing, 32 * kMiB);
        slots->add(pool.more(missing));
    }
    EXPECT_EQ(slots->bytes(), 96 * kMiB);
    for (std::uint32_t i = 0; i < 6; ++i) {
        all.push_back(slots->slot(i));
        EXPECT_TRUE(device_->pointer_info(all.back() + 16 * kMiB - 1).known) << i;
    }
    const std::vector<const std::byte*> in_order = all;
    std::sort(all.begin(), all.end());
    for (std::size_t i = 1; i < all.size(); ++i) EXPECT_GE(all[i] - all[i - 1], static_cast<std::ptrdiff_t>(16 * kMiB));
    EXPECT_EQ(slots->slot(6), nullptr);
    pool.give_back(std::move(slots));
    const auto again = pool.lease_slots(shared, never);
    EXPECT_EQ(again->missing_bytes(), 0u);
    for (std::uint32_t i = 0; i < 6; ++i) EXPECT_EQ(again->slot(i), in_order[i]);
    EXPECT_EQ(pool.held_bytes(), 96 * kMiB);
}

TEST_F(Pool, a_team_is_given_idle_slots_that_are_all_there_before_others_and_others_before_new_ones) {
    EnginePool pool(options(), 64 * kMiB);
    const Shape shared = shape(4 * kMiB, 6);
    auto whole = pool.lease_slots(shared, never), begun = pool.lease_slots(shared, never);
    while (whole->missing_bytes() != 0) whole->add(pool.more(whole->missing_bytes()));
    const std::byte* of_whole = whole->slot(0);
    const std::byte* of_begun = begun->slot(0);
    pool.give_back(std::move(begun));
    pool.give_back(std::move(whole));
    const auto first = pool.lease_slots(shared, never), second = pool.lease_slots(shared, never);
    EXPECT_EQ(first->slot(0), of_whole);
    EXPECT_EQ(second->slot(0), of_begun);
    EXPECT_EQ(pool.held_bytes(), 32 * kMiB);
}

TEST_F(Pool, more_slots_wait_for_no_room_and_their_blocks_go_back_when_others_need_them) {
    EnginePool pool(options(), 24 * kMiB);
    const Shape shared = shape(4 * kMiB, 4);
    auto slots = pool.lease_slots(shared, never);
    slots->add(pool.more(slots->missing_bytes()));
    auto path = pool.lease(shape(4 * kMiB, 2), 0, never);
    EXPECT_TRUE(pool.more(8 * kMiB).empty());
    pool.give_back(std::move(slots));
    pool.give_back(std::move(path));
    EXPECT_NE(pool.lease(shape(6 * kMiB, 4), 1, at_once), nullptr);  // the whole budget
    EXPECT_EQ(pool.held_bytes(), 24 * kMiB);
    EXPECT_EQ(pool.peak_bytes(), 24 * kMiB);
}

TEST_F(Pool, lent_memory_is_registered_counts_as_in_use_and_comes_back) {
    EnginePool pool(options(), 8 * kMiB);
    const Deadline now = Deadline::after(std::chrono::milliseconds(0));
    const std::byte* first = nullptr;
    {
        const auto lent = pool.lend(3 * kMiB);
        first = lent.memory().data();
        EXPECT_EQ(lent.memory().size(), 4 * kMiB);
        EXPECT_TRUE(device_->pointer_info(first).known);
        EXPECT_TRUE(pool.lend(6 * kMiB).memory().empty());  // there is no room, and it does not wait
        EXPECT_FALSE(pool.fill(1, now));
    }
    EXPECT_TRUE(pool.fill(1, now));
    EXPECT_EQ(pool.lend(1).memory().data(), first);
    EXPECT_TRUE(pool.lend(0).memory().empty());
    EXPECT_EQ(pool.held_bytes(), 4 * kMiB);
}

// What large transfers have left idle is dropped for it, the oldest first, and no more than it takes.
TEST_F(Pool, idle_slots_make_room_for_what_is_lent) {
    EnginePool pool(options(), 24 * kMiB);
    auto slots = pool.lease_slots(shape(4 * kMiB, 4), never);
    slots->add(pool.more(slots->missing_bytes()));
    auto path = pool.lease(shape(4 * kMiB, 2), 0, never);
    EXPECT_TRUE(pool.lend(4 * kMiB).memory().empty()) << "none is idle";
    pool.give_back(std::move(slots));
    pool.give_back(std::move(path));
    EXPECT_TRUE(pool.more(8 * kMiB).empty()) << "all of the budget is idle slots";
    EXPECT_TRUE(pool.lend(25 * kMiB).memory().empty()) << "more than there is";
    const auto lent = pool.lend(4 * kMiB), other = pool.lend(6 * kMiB);
    EXPECT_EQ(lent.memory().size(), 4 * kMiB);
    EXPECT_EQ(other.memory().size(), 6 * kMiB);
    EXPECT_EQ(pool.held_bytes(), 24 * kMiB);
}

TEST_F(Pool, idle_slots_stay_where_they_make_too_little_room_for_what_is_lent) {
    EnginePool pool(options(), 24 * kMiB);
    const auto in_use = pool.lease_slots(shape(4 * kMiB, 2), never);
    pool.give_back(pool.lease(shape(4 * kMiB, 2), 0, never));
    ASSERT_EQ(paths_made_, 1);
    EXPECT_TRUE(pool.lend(20 * kMiB).memory().empty()) << "16 MiB are not in use";
    pool.give_back(pool.lease(shape(4 * kMiB, 2), 0, never));
    EXPECT_EQ(paths_made_, 1);
    EXPECT_EQ(pool.lend(16 * kMiB).memory().size(), 16 * kMiB);
}

TEST_F(Pool, what_a_worker_waits_for_is_not_lent) {
    EnginePool pool(options(), 8 * kMiB);
    std::atomic<bool> waits{false};
    std::thread worker;
    {
        const auto lent = pool.lend(4 * kMiB);
        worker = std::thread([&] {
            pool.give_back(pool.lease(shape(4 * kMiB, 2), 0, [&] {
                waits = true;
                return false;
            }));
        });
        while (!waits) std::this_thread::yield();
        EXPECT_TRUE(pool.lend(4 * kMiB).memory().empty());
    }
    worker.join();
    EXPECT_EQ(pool.lend(4 * kMiB).memory().size(), 4 * kMiB) << "the worker has what it waited for";
}

// Lenders, workers and teams beside each other, in a budget that is too small for all: each gets its turn, and what it
// writes stays as it is until it gives it back.
TEST_F(Pool, lent_memory_is_of_one_caller_while_others_lease_and_drop) {
    EnginePool pool(options(), 12 * kMiB);
    const auto fill_and_check = [](std::span<std::byte> memory, int value) {  // a byte of each page
        bool own = true;
        for (std::size_t at = 0; at < memory.size(); at += 4096) memory[at] = static_cast<std::byte>(value);
        std::this_thread::yield();
        for (std::size_t at = 0; at < memory.size(); at += 4096) own &= memory[at] == static_cast<std::byte>(value);
        return own;
    };
    std::atomic<bool> own{true};
    std::vector<std::thread> threads;
    for (int number = 0; number < 2; ++number) {
        threads.emplace_back([&, number] {
            for (int turn = 0; turn < 400; ++turn) {
                const auto lent = pool.lend((1 + static_cast<std::uint64_t>(turn) % 8) * kMiB);
                if (!fill_and_check(lent.memory(), 10 + number)) own = false;
            }
        });
        threads.emplace_back([&, number] {
            for (int turn = 0; turn < 200; ++turn) {
                const auto depth = static_cast<std::uint32_t>(1 + (turn + number) % 4);
                auto path = pool.lease(shape(2 * kMiB, depth), static_cast<std::uint32_t>(number), never);
                if (!fill_and_check(path->blocks().front(), 20 + number)) own = false;
                pool.give_back(std::move(path));
            }
        });
    }
    for (std::thread& one : threads) one.join();
    EXPECT_TRUE(own);
    EXPECT_TRUE(pool.fill(1, Deadline::now())) << "all came back";
    EXPECT_LE(pool.peak_bytes(), 12 * kMiB);
    EXPECT_EQ(pool.lend(12 * kMiB).memory().size(), 12 * kMiB) << "idle slots hold no byte for ever";
}

}  // namespace
}  // namespace penstock::engine
