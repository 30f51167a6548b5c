// Dirty pages that lie side by side are written back together, by the lanes of the warp that writes one of them.
#include <gtest/gtest.h>

#include <algorithm>

#include "ondevice/warp/writer_rig.hpp"

namespace penstock::ondevice {
namespace {


TEST(WriteBack, pages_beside_each_other_go_together) {
    OneWriter<Fifo> writer(16);
    for (const u64 key : {5, 9, 4, 7, 6, 10}) writer.store(key);
    EXPECT_EQ(writer.flush(), Status::ok);
    EXPECT_EQ(writer.out.keys, (std::vector<u64>{5, 4, 6, 7, 9, 10})) << "first its own page, then those beside";
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

// Warps write page after page of an array through a small cache. A warp that is ready takes the next page, or each warp
// has a share of its own.
struct Stream {
    u32 warps;
    bool shares = false;
    u32 frames = 128;
    u32 write_ns = 64;
};
struct Left {
    double together;  // pages beside each other that one warp wrote at a time, on average
    u32 most;         // the most pages on their way at a time
};
template <class Policy>
Left left_by(const Stream& stream) {
    const u64 pages = 2 * stream.frames + 256;
    Disk disk(pages, WarpUsers::kPage);
    Outgoing out;
    out.slots = stream.frames;
    out.write_ns = stream.write_ns;
    CacheRig<Policy, Warped, WarpStore> rig(shape_of(stream.frames, WarpUsers::kPage), WarpStore{&disk, &out});
    const auto cache = rig.cache();
    u64 given = 0;
    Warps machine({stream.warps, kWriterLanes, 3, false});
    machine.run([&](u32 warp, u32 lane) {
        for (u64 turn = warp;; turn += stream.warps) {
            u64 key = turn;
            if (!stream.shares) {
                if (lane == 0) {
                    const Unseen unseen;
                    key = given++;
                }
                key = Warped::from((1u << kWriterLanes) - 1, key, 0);
            }
            if (key >= pages) return;
            u32 frame = kNoFrame;
            if (cache.overwrite(key, kEver, frame) == Status::pending) cache.filled(frame);
            cache.release(frame, true);
        }
    });
    std::vector<std::vector<u64>> last(stream.warps);
    u32 pieces = 0;
    for (std::size_t i = 0; i < out.keys.size(); ++i) {
        std::vector<u64>& run = last[out.by[i]];
        const u64 key = out.keys[i];
        if (!run.empty() && run[0] / kWriterLanes != key / kWriterLanes) run.clear();
        const auto beside = [&](u64 other) { return other + 1 == key || key + 1 == other; };
        const auto neighbours = std::count_if(run.begin(), run.end(), beside);
        pieces += 1 - static_cast<u32>(neighbours);  // a page with two neighbours joins two pieces
        run.push_back(key);
    }
    return {static_cast<double>(out.keys.size()) / pieces, out.most};
}

TEST(WriteBack, a_stream_of_pages_leaves_together_where_its_order_was_kept) {
    EXPECT_GT(left_by<Fifo>({16}).together, 3.5);
    EXPECT_GT(left_by<SweepResistant>({2}).together, 3.5) << "a quarter of what is on probation";
    EXPECT_LT(left_by<SweepResistant>({16, true}).together, 2) << "the control";
}

TEST(WriteBack, a_slow_disk_tears_no_runs_and_has_several_at_a_time) {
    for (const u32 warps : {4u, 8u}) {
        const Left left = left_by<SweepResistant>({warps, false, 512, 1'000'000});
        EXPECT_GT(left.together, 3.8) << warps;
        EXPECT_GE(left.most, 3 * kWriterLanes) << warps;
    }
}

// Warps that write whole pages of one array in turn and evict each other's pages, and what is on the disk afterwards.
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
        made.warps = {6, kWriterLanes, seed, false};  // lanes that overwrite a page together fill it together
        return made;
    }
    static void write(WarpUsers& users) {
        const auto cache = users.cache();
        users.warps.run([&](u32 warp, u32 lane) {
            for (u64 key = warp; key < kPages; key += users.plan.warps.warps) {
                u32 frame = kNoFrame;
                // A lane that came later would overwrite what the others stored.
                Warped::sync((1u << kWriterLanes) - 1);
                const Status status = cache.overwrite(key, kEver, frame);
                for (u64 i = lane; i < WarpUsers::kPageItems; i += kWriterLanes)
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
