// The pool of stations: the budget holds, idle ones are reused by their worker for every shape that they have the room
// for, who finds no room waits.
#include "engine/workers/station.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "path/memory_store.hpp"

namespace penstock::engine {
namespace {

class Pool : public testing::Test {
  protected:
    std::shared_ptr<Device> device_ = make_host_device();
    std::shared_ptr<path::MemoryStore> store_ = std::make_shared<path::MemoryStore>();
    std::atomic<int> paths_made_{0};
    StationParts parts() {
        return {device_.get(), -1, [this](PathKind kind, PathOptions options) {
                    ++paths_made_;
                    options.store = store_;
                    return make_path(kind == PathKind::memory ? kind : PathKind::null, options);
                }};
    }
    static Shape shape(std::uint64_t chunk_bytes, std::uint32_t depth) {
        return {.path = PathKind::null, .chunk_bytes = chunk_bytes, .depth = depth};
    }
    static bool never() { return false; }
};

TEST_F(Pool, a_returned_station_serves_the_same_worker_again) {
    StationPool pool(parts(), 64 * kMiB);
    auto station = pool.lease(shape(1 * kMiB, 4), 0, never);
    const std::byte* slot = station->slot(0);
    EXPECT_EQ(station->slot(1) - station->slot(0), static_cast<std::ptrdiff_t>(1 * kMiB));
    pool.give_back(std::move(station));
    EXPECT_EQ(pool.lease(shape(1 * kMiB, 4), 0, never)->slot(0), slot);
    EXPECT_EQ(paths_made_, 1);
}

TEST_F(Pool, a_station_serves_every_shape_that_it_has_the_room_for) {
    StationPool pool(parts(), 64 * kMiB);
    auto station = pool.lease(shape(256 * kKiB, 16), 0, never);
    const std::span<std::byte> memory = station->memory();
    pool.give_back(std::move(station));
    for (const std::uint64_t chunk_bytes : {64 * kKiB, 128 * kKiB, 256 * kKiB}) {
        for (const std::uint32_t depth : {1u, 8u, 16u}) {
            for (const Direction direction : {Direction::read, Direction::write}) {
                Shape other = shape(chunk_bytes, depth);
                other.direction = direction;
                other.staged = depth != 1;
                station = pool.lease(other, 0, never);
                EXPECT_EQ(station->shape(), other);
                const std::byte* end = station->slot(depth - 1) + chunk_bytes;
                EXPECT_TRUE(station->slot(0) == memory.data() && end <= memory.data() + memory.size());
                EXPECT_TRUE(station->event(depth - 1).done());  // there is one for each slot
                pool.give_back(std::move(station));
            }
        }
    }
    EXPECT_EQ(paths_made_, 1);
    pool.give_back(pool.lease(shape(256 * kKiB, 32), 0, never));  // more slots than there is memory for
    EXPECT_EQ(paths_made_, 2);
}

TEST_F(Pool, a_small_shape_leaves_a_large_station_to_others) {
    StationPool pool(parts(), 128 * kMiB);
    pool.give_back(pool.lease(shape(4 * kMiB, 16), 0, never));
    const auto small = pool.lease(shape(64 * kKiB, 8), 0, never);
    EXPECT_EQ(small->memory().size(), 2 * kMiB);
    EXPECT_EQ(paths_made_, 2);
}

TEST_F(Pool, a_path_serves_no_more_operations_than_it_was_made_for) {
    StationPool pool(parts(), 64 * kMiB);
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

TEST_F(Pool, a_station_without_memory_is_not_dropped_to_make_room) {
    StationPool pool(parts(), 8 * kMiB);
    Shape straight = shape(1 * kMiB, 4);
    straight.staged = false;
    pool.give_back(pool.lease(straight, 0, never));
    auto all = pool.lease(shape(2 * kMiB, 4), 1, never);
    EXPECT_EQ(pool.lease(shape(2 * kMiB, 2), 0, [] { return true; }), nullptr);
    pool.give_back(pool.lease(straight, 0, never));
    EXPECT_EQ(paths_made_, 2);
}

TEST_F(Pool, another_worker_or_shape_gets_its_own) {
    StationPool pool(parts(), 64 * kMiB);
    pool.give_back(pool.lease(shape(1 * kMiB, 4), 0, never));
    pool.give_back(pool.lease(shape(1 * kMiB, 4), 1, never));
    pool.give_back(pool.lease(shape(2 * kMiB, 4), 1, never));
    EXPECT_EQ(paths_made_, 3);
    EXPECT_EQ(pool.held_bytes(), 16 * kMiB);
}

TEST_F(Pool, idle_stations_make_room_before_the_budget_breaks) {
    StationPool pool(parts(), 8 * kMiB);
    pool.give_back(pool.lease(shape(1 * kMiB, 4), 0, never));
    pool.give_back(pool.lease(shape(2 * kMiB, 4), 0, never));
    EXPECT_EQ(pool.peak_bytes(), 8 * kMiB);
    EXPECT_EQ(pool.held_bytes(), 8 * kMiB);
}

TEST_F(Pool, who_finds_no_room_waits_for_it_or_gives_up) {
    StationPool pool(parts(), 8 * kMiB);
    auto station = pool.lease(shape(2 * kMiB, 3), 0, never);
    EXPECT_EQ(pool.lease(shape(2 * kMiB, 2), 1, [] { return true; }), nullptr);
    std::thread later([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        pool.give_back(std::move(station));
    });
    EXPECT_NE(pool.lease(shape(2 * kMiB, 2), 1, never), nullptr);
    later.join();
    EXPECT_LE(pool.peak_bytes(), 8 * kMiB);
}

TEST_F(Pool, who_waits_for_room_gets_the_station_that_came_back) {
    StationPool pool(parts(), 8 * kMiB);
    auto station = pool.lease(shape(2 * kMiB, 4), 0, never);
    const std::byte* slot = station->slot(0);
    std::atomic<bool> waits{false};
    std::thread later([&] {
        while (!waits) std::this_thread::yield();
        pool.give_back(std::move(station));
    });
    const auto asked = [&] {
        waits = true;
        return false;
    };
    EXPECT_EQ(pool.lease(shape(2 * kMiB, 4), 0, asked)->slot(0), slot);
    later.join();
    EXPECT_EQ(paths_made_, 1);
}

TEST_F(Pool, stations_of_other_paths_use_memory_that_is_registered_already) {
    StationPool pool(parts(), 8 * kMiB);
    auto station = pool.lease(shape(2 * kMiB, 4), 0, never);
    const std::byte* slot = station->slot(0);
    pool.give_back(std::move(station));
    Shape other = shape(1 * kMiB, 2);
    other.path = PathKind::memory;
    EXPECT_EQ(pool.lease(other, 0, never)->slot(0), slot);
    EXPECT_EQ(paths_made_, 2);
    EXPECT_EQ(pool.held_bytes(), 8 * kMiB);
}

TEST_F(Pool, memory_of_a_station_that_hung_is_not_used_again) {
    StationPool pool(parts(), 8 * kMiB);
    auto hung = pool.lease(shape(2 * kMiB, 2), 0, never);
    auto other = pool.lease(shape(2 * kMiB, 2), 1, never);
    const std::byte* slot = hung->slot(0);
    pool.drop(std::move(hung));
    EXPECT_FALSE(device_->pointer_info(slot).known);
    EXPECT_TRUE(device_->pointer_info(other->slot(0)).known);
    EXPECT_EQ(pool.held_bytes(), 4 * kMiB);
}

TEST_F(Pool, a_station_that_cannot_be_made_gives_its_room_back) {
    StationParts broken = parts();
    broken.make_path = [](PathKind, PathOptions) -> std::unique_ptr<Path> {
        throw Error(ErrorCode::unsupported, "make path", "not here");
    };
    StationPool pool(broken, 8 * kMiB);
    EXPECT_THROW(pool.lease(shape(1 * kMiB, 4), 0, never), Error);
    EXPECT_EQ(pool.held_bytes(), 0u);
}

TEST_F(Pool, more_than_the_whole_budget_is_refused_not_waited_for) {
    StationPool pool(parts(), 8 * kMiB);
    EXPECT_THROW(pool.lease(shape(4 * kMiB, 4), 0, never), Error);
}

TEST_F(Pool, the_number_of_workers_makes_no_other_station) {
    StationPool pool(parts(), 64 * kMiB);
    Shape four = shape(1 * kMiB, 4);
    four.workers = 4;
    pool.give_back(pool.lease(four, 0, never));
    Shape eight = four;
    eight.workers = 8;
    const auto again = pool.lease(eight, 0, never);
    EXPECT_EQ(paths_made_, 1);
    EXPECT_EQ(again->shape(), eight);
}

TEST_F(Pool, shared_slots_serve_every_path_and_have_none_of_their_own) {
    StationPool pool(parts(), 64 * kMiB);
    Shape shared = shape(4 * kMiB, 4);
    shared.part_bytes = 1 * kMiB;
    auto station = pool.lease(shared, 7, never);
    const std::byte* slot = station->slot(0);
    pool.give_back(std::move(station));
    shared.path = PathKind::buffered;
    EXPECT_EQ(pool.lease(shared, 7, never)->slot(0), slot);
    EXPECT_EQ(paths_made_, 0);
    shared.part_bytes = 0;  // slots of its own: another station
    EXPECT_NE(pool.lease(shared, 7, never), nullptr);
    EXPECT_EQ(paths_made_, 1);
}

}  // namespace
}  // namespace penstock::engine
