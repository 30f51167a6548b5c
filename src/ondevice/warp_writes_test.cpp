// Dirty pages that lie side by side are written back side by side, by the lanes of whoever writes one of them.
#include <gtest/gtest.h>

#include "ondevice/warp_writer_rig.hpp"

namespace penstock::ondevice {
namespace {

constexpr u32 kLanes = kWriterLanes;

TEST(WriteBack, pages_beside_each_other_go_together) {
    OneWriter<Fifo> writer(16);
    for (const u64 key : {5, 9, 4, 7, 6, 10}) writer.store(key);
    EXPECT_EQ(writer.flush(), Status::ok);
    EXPECT_EQ(writer.out.keys, (std::vector<u64>{5, 4, 6, 7, 9, 10})) << "first who it is about, then those beside it";
    EXPECT_EQ(writer.out.most, 4u);
    for (const u64 key : {4, 5, 6, 7, 9, 10}) EXPECT_TRUE(writer.written(key)) << key;
    EXPECT_EQ(writer.flush(), Status::ok);
    EXPECT_EQ(writer.out.keys.size(), 6u) << "they are dirty no more";
}

TEST(WriteBack, whoever_needs_room_makes_it_for_the_next_too) {
    OneWriter<Fifo> writer(4);
    for (u64 key = 8; key < 12; ++key) writer.store(key);
    for (u64 key = 20; key < 24; ++key) writer.touch(key);
    EXPECT_EQ(writer.out.keys, (std::vector<u64>{8, 9, 10, 11}));
    EXPECT_EQ(writer.out.most, 4u);
}

TEST(WriteBack, a_page_that_is_in_use_stays_for_later) {
    OneWriter<Fifo> writer(4);
    for (u64 key = 8; key < 12; ++key) writer.store(key);
    const Status status = writer.together([](const auto& cache) {
        u32 used = kNoFrame, other = kNoFrame;
        Status got = cache.acquire(10, kEver, used);
        if (got == Status::ok) got = cache.acquire(20, kEver, other);
        if (got == Status::ok) cache.release(other);
        cache.release(used);
        return got;
    });
    EXPECT_EQ(status, Status::ok);
    EXPECT_EQ(writer.out.keys, (std::vector<u64>{8, 9, 11}));
    EXPECT_EQ(writer.flush(), Status::ok);
    EXPECT_EQ(writer.out.keys, (std::vector<u64>{8, 9, 11, 10}));
}

TEST(WriteBack, a_page_that_was_touched_again_goes_only_when_all_go) {
    OneWriter<Clock> writer(4);
    for (u64 key = 8; key < 12; ++key) writer.store(key);
    writer.touch(9);
    writer.touch(20);
    EXPECT_EQ(writer.out.keys, (std::vector<u64>{8, 10, 11}));
    writer.touch(9);
    EXPECT_EQ(writer.flush(), Status::ok);
    EXPECT_EQ(writer.out.keys, (std::vector<u64>{8, 10, 11, 9}));
}

TEST(WriteBack, what_fails_stays_dirty_and_is_told_and_the_others_go) {
    OneWriter<Fifo> writer(8);
    for (u64 key = 0; key < 4; ++key) writer.store(key);
    writer.out.fails = 2;
    EXPECT_EQ(writer.flush(), Status::io_error);
    for (u64 key = 0; key < 4; ++key) EXPECT_EQ(writer.written(key), key != 2) << key;
    writer.out.fails = ~0ull;
    EXPECT_EQ(writer.flush(), Status::ok);
    for (u64 key = 0; key < 4; ++key) EXPECT_TRUE(writer.written(key)) << key;
}

TEST(WriteBack, where_there_is_no_room_for_all_the_rest_goes_later) {
    for (const u32 slots : {1u, 2u, 3u}) {
        OneWriter<Fifo> writer(8);
        writer.out.slots = slots;
        for (u64 key = 0; key < 8; ++key) writer.store(key);
        EXPECT_EQ(writer.flush(), Status::ok);
        EXPECT_EQ(writer.out.most, slots);
        EXPECT_EQ(writer.out.keys.size(), 8u) << "each once";
        for (u64 key = 0; key < 8; ++key) EXPECT_TRUE(writer.written(key)) << key;
    }
}

// How many pages went together, on average, where warps write page after page of an array through a cache of few: the
// next page to who is ready, or to each its share.
template <class Policy>
double mean_run(u32 warps, bool shares) {
    constexpr u64 kPages = 512;
    Disk disk(kPages, WarpUsers::kPage);
    Outgoing out;
    CacheRig<Policy, Warped, WarpStore> rig(shape_of(128, WarpUsers::kPage), WarpStore{&disk, &out});
    const auto cache = rig.cache();
    u64 given = 0;
    Warps machine({warps, kLanes, 3, false});
    machine.run([&](u32 warp, u32 lane) {
        for (u64 turn = warp;; turn += warps) {
            u64 key = turn;
            if (!shares) {
                if (lane == 0) {
                    const Unseen unseen;
                    key = given++;
                }
                key = Warped::from((1u << kLanes) - 1, key, 0);
            }
            if (key >= kPages) return;
            u32 frame = kNoFrame;
            if (cache.overwrite(key, kEver, frame) == Status::pending) cache.filled(frame);
            cache.release(frame, true);
        }
    });
    std::vector<u64> last(warps, ~0ull);
    u32 runs = 0;
    for (std::size_t i = 0; i < out.keys.size(); ++i) {
        u64& before = last[out.by[i]];
        runs += before == ~0ull || out.keys[i] / kLanes != before / kLanes;
        before = out.keys[i];
    }
    return static_cast<double>(out.keys.size()) / runs;
}

TEST(WriteBack, a_stream_of_pages_leaves_together_where_its_order_was_kept) {
    EXPECT_GT(mean_run<Fifo>(16, false), 3.5);
    EXPECT_GT(mean_run<SweepResistant>(2, false), 2.5) << "a quarter of what is on probation";
    EXPECT_LT(mean_run<SweepResistant>(16, true), 2) << "the control";
}

// Warps that write whole pages of one array in turn, and evict each other's; what is on the disk afterwards.
struct ManyWriters : testing::TestWithParam<std::tuple<u32, u32>> {
    static constexpr u64 kPages = 64;
    static u32 wrong_on(const Disk& disk) {
        u32 wrong = 0;
        for (u64 key = 0; key < kPages; ++key)
            for (u64 i = 0; i < WarpUsers::kPageItems; ++i) wrong += disk.word(key, i) != (key << 32 | i);
        return wrong;
    }
    WarpUsers::Plan plan(u64 seed) const {
        WarpUsers::Plan made;
        made.frames = std::get<0>(GetParam());
        made.pages = kPages;
        made.warps = {6, kLanes, seed, false};  // who overwrites a page together fills it together
        return made;
    }
    static void write(WarpUsers& users) {
        const auto cache = users.cache();
        users.warps.run([&](u32 warp, u32 lane) {
            for (u64 key = warp; key < kPages; key += users.plan.warps.warps) {
                u32 frame = kNoFrame;
                Warped::sync((1u << kLanes) - 1);  // one that came later would overwrite what the others had stored
                const Status status = cache.overwrite(key, kEver, frame);
                for (u64 i = lane; i < WarpUsers::kPageItems; i += kLanes)
                    set_word(cache.page(frame), i, key << 32 | i);
                if (status == Status::pending) cache.filled(frame);
                cache.release(frame, true);
                const Unseen unseen;
                EXPECT_TRUE(status == Status::pending || status == Status::ok) << key;
            }
        });
    }
};

TEST_P(ManyWriters, lose_nothing) {
    for (u64 seed = 1; seed <= 3; ++seed) {
        WarpUsers users(plan(seed));
        users.outgoing.slots = std::get<1>(GetParam());
        write(users);
        EXPECT_EQ(users.flush(), Status::ok);
        EXPECT_EQ(wrong_on(users.disk), 0u) << "seed " << seed;
        EXPECT_TRUE(users.nothing_left());
        EXPECT_LE(users.outgoing.most, users.outgoing.slots);
    }
}

INSTANTIATE_TEST_SUITE_P(Caches, ManyWriters,
                         testing::Combine(testing::Values(1, 8, 24), testing::Values(1, 5, 64)));

TEST(WriteBack, control_pages_that_are_said_to_be_written_and_are_not_are_seen) {
    WarpUsers::Plan plan;
    plan.frames = 8;
    plan.pages = ManyWriters::kPages;
    WarpUsers users(plan);
    users.outgoing.drops_each = 5;
    ManyWriters::write(users);
    EXPECT_EQ(users.flush(), Status::ok);
    EXPECT_GT(ManyWriters::wrong_on(users.disk), 0u);
}

}  // namespace
}  // namespace penstock::ondevice
