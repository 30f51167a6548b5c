// Dirty pages that leave together do not wait for each other: not for room in the store, not for marks of a warp that
// waits for room, and not past the deadline of the warp's leader. A warp that needs a frame waits for pages on their
// way.
#include <gtest/gtest.h>

#include <atomic>

#include "ondevice/warp/writer_rig.hpp"

namespace penstock::ondevice {
namespace {

constexpr u32 kLanes = kWriterLanes;
constexpr Lanes kAll = (1u << kLanes) - 1;
constexpr u64 kLong = 3'000'000;                 // ns
constexpr u64 kPatient = kPatienceNs + 100'000;  // ns: how long a warp waits for others, and the work itself

struct Waited {
    Status status = Status::pending;
    u64 took_ns = 0;
};

// One or several warps over a cache of their own.
template <class Policy = Fifo>
struct Crowd : OneWriter<Policy> {
    using OneWriter<Policy>::OneWriter;

    // Runs `body(cache, warp, lane)` on every lane. Steps of an earlier run come before.
    template <class Body>
    void run(u32 warps, const Body& body) {
        const auto cache = this->rig.cache();
        Warps machine({warps, kLanes, 1, false});
        machine.run([&](u32 warp, u32 lane) { body(cache, warp, lane); });
    }
    void store_some(u64 first, u64 end) {
        for (u64 key = first; key < end; ++key) this->store(key);
    }
};

// Runs an action on all lanes of a warp, to the same deadline; returns the first lane's status, and when it got it.
template <class Action>
void timed(const Action& action, Waited& outcome) {
    Warped::sync(kAll);
    const u64 began = Warped::from(kAll, Warped::now_ns(), 0);
    const Status status = action(began);
    Warped::sync(kAll);
    if (Warped::lane() == 0) outcome = {status, Warped::now_ns() - began};
}

template <class Cache>
Status clean(const Cache& cache, u64 key, u64 deadline) {
    return cache.loads.writes.clean(kAll, cache.pool().directory.find_locked(key), deadline, Neighbours::all);
}

TEST(WriteWaits, a_page_that_cannot_go_keeps_none_beside_it) {
    for (const u64 stuck : {4, 5}) {
        Crowd<> crowd(8);
        crowd.store_some(4, 8);
        crowd.out.stuck = stuck;
        for (u64 key = 7; key >= 4; --key) {
            Waited outcome;
            crowd.run(1, [&](const auto& cache, u32, u32) {
                timed([&](u64 now) { return clean(cache, key, now + kLong); }, outcome);
            });
            EXPECT_EQ(outcome.status, key == stuck ? Status::timed_out : Status::ok) << key << " beside " << stuck;
            if (key != stuck) {
                EXPECT_LT(outcome.took_ns, kPatient) << key << " beside " << stuck;
            }
        }
        EXPECT_EQ(crowd.out.keys.size(), 3u) << "each once";
        crowd.out.stuck = ~0ull;
        EXPECT_EQ(crowd.flush(), Status::ok);
        EXPECT_TRUE(crowd.written(stuck));
    }
}

TEST(WriteWaits, who_waits_for_room_has_no_marks_on_pages_beside_its_own) {
    Crowd<> crowd(8);
    crowd.store_some(4, 8);
    crowd.out.stuck = 4;
    Waited waits, goes;
    crowd.run(2, [&](const auto& cache, u32 warp, u32) {
        if (warp == 1) Warped::pause(kLong / 2);
        timed([&](u64 now) { return clean(cache, warp == 0 ? 4 : 5, now + 4 * kLong); }, warp == 0 ? waits : goes);
    });
    EXPECT_EQ(waits.status, Status::timed_out);
    EXPECT_EQ(goes.status, Status::ok);
    EXPECT_LT(goes.took_ns, kPatient);
}

TEST(WriteWaits, pages_beside_it_that_are_stored_to_again_and_again_do_not_go_before_it_for_ever) {
    for (const u32 slots : {1u, 2u, 4u}) {
        Crowd<> crowd(8);
        crowd.out.slots = slots;
        crowd.store_some(4, 8);
        Waited outcome;
        std::atomic<bool> over{false};
        crowd.run(2, [&](const auto& cache, u32 warp, u32 lane) {
            if (warp == 0) {
                timed([&](u64 now) { return clean(cache, 7, now + kLong); }, outcome);
                over = true;
            } else {
                // Stores again and again to the pages before it, so that they would always be the first to go.
                for (u64 key = 4; lane == 0 && !over; key = key == 6 ? 4 : key + 1) {
                    const u32 frame = cache.pool().directory.find_locked(key);
                    FrameState<Warped>::template change<Order::release>(cache.pool().frame(frame), 0, kDirty, 0);
                    Warped::pause(500);
                }
            }
        });
        EXPECT_EQ(outcome.status, Status::ok) << slots;
        EXPECT_LT(outcome.took_ns, kPatient) << slots;
    }
}

TEST(WriteWaits, the_deadline_is_the_leaders) {
    for (u32 hasty = 0; hasty < kLanes; ++hasty) {
        Crowd<> crowd(4);
        crowd.store_some(4, 8);
        crowd.run(1, [&](const auto& cache, u32, u32 lane) {
            Warped::sync(kAll);
            clean(cache, 4, lane == hasty ? Warped::now_ns() + kLong : kEver);
        });
        ASSERT_EQ(crowd.out.deadlines.size(), 4u);
        for (const u64 deadline : crowd.out.deadlines) EXPECT_EQ(deadline == kEver, hasty != 0) << hasty;
    }
}

TEST(WriteWaits, pages_on_their_way_to_the_disk_are_not_in_use) {
    for (const u64 patience : {kLong, 40 * kLong}) {
        Crowd<SweepResistant> crowd(4);
        crowd.out.write_ns = 10 * kLong;
        Waited outcome;
        crowd.store_some(4, 8);
        crowd.run(2, [&](const auto& cache, u32 warp, u32) {
            if (warp == 0) {
                cache.write_back_part(0, 1, kEver);
                return;
            }
            Warped::pause(kLong);
            timed([&](u64 now) {
                u32 frame = kNoFrame;
                const Status status = cache.acquire(20, now + patience, frame);
                if (status == Status::ok) cache.release(frame);
                return status;
            }, outcome);
        });
        EXPECT_EQ(outcome.status, patience == kLong ? Status::timed_out : Status::ok) << "all_pinned would be untrue";
        EXPECT_EQ(crowd.out.most, 4u);
    }
}

TEST(WriteWaits, what_fails_is_tried_with_those_beside_it_and_by_itself_and_no_more) {
    constexpr u32 kWarps = 4;
    Crowd<> crowd(8);
    crowd.store_some(0, 8);
    for (u32 flush = 1; flush <= 2; ++flush) {
        crowd.disk.fail_put_each = 1;
        crowd.disk.puts = 0;
        crowd.run(kWarps, [](const auto& cache, u32 warp, u32) {
            EXPECT_EQ(cache.write_back_part(warp, kWarps, kEver), Status::io_error);
        });
        EXPECT_GE(crowd.disk.puts, 8u);
        EXPECT_LE(crowd.disk.puts, 16u);
    }
    crowd.disk.fail_put_each = 0;
    EXPECT_EQ(crowd.flush(), Status::ok);
    crowd.out.keys.clear();
    crowd.out.most = 0;
    crowd.store_some(0, 8);
    EXPECT_EQ(crowd.flush(), Status::ok);
    EXPECT_EQ(crowd.out.most, 4u) << "together again once they were written";
    EXPECT_EQ(crowd.out.keys.size(), 8u);
}

TEST(WriteWaits, a_page_that_takes_very_long_to_leave_keeps_nobody) {
    Crowd<SweepResistant> crowd(32);
    crowd.store_some(0, 32);
    const auto pool = crowd.rig.still();
    u64 slow = 0;
    while (!(pool.frame(pool.directory.glance(slow)).state & kProbation)) ++slow;
    crowd.out.slow = slow;
    Waited outcome;
    crowd.run(2, [&](const auto& cache, u32 warp, u32) {
        if (warp == 0) {
            clean(cache, slow, kEver);
            return;
        }
        Warped::pause(kLong);
        timed([&](u64 now) {
            for (u64 key = 40; key < 44; ++key) {
                u32 frame = kNoFrame;
                const Status status = cache.acquire(key, now + 40 * kLong, frame);
                if (status != Status::ok) return status;
                cache.release(frame);
            }
            return Status::ok;
        }, outcome);
    });
    EXPECT_EQ(outcome.status, Status::ok);
}

// How many of the pages that were used again and again are gone after other pages went through the cache.
u32 driven_out(u32 warps, bool dirty) {
    constexpr u32 kFrames = 128;
    Disk disk(512, WarpUsers::kPage);
    Outgoing out;
    out.write_ns = 50'000;
    CacheRig<SweepResistant, Warped, WarpStore> rig(shape_of(kFrames, WarpUsers::kPage), WarpStore{&disk, &out});
    const auto cache = rig.cache();
    const u64 most = kFrames - cache.pool().probation;
    const auto each = [&](u32 of, u64 first, u64 end, bool stores) {
        Warps machine({of, kLanes, 3, false});
        machine.run([&](u32 warp, u32) {
            for (u64 key = first + warp; key < end; key += of) {
                u32 frame = kNoFrame;
                Warped::sync(kAll);
                const Status got = stores ? cache.overwrite(key, kEver, frame) : cache.acquire(key, kEver, frame);
                if (got == Status::pending) cache.filled(frame);
                cache.release(frame, stores);
            }
        });
    };
    for (u32 round = 0; round < 4; ++round) each(1, 0, most, false);
    each(warps, 128, 384, dirty);
    u32 here = 0;
    for (u64 key = 0; key < most; ++key) here += rig.still().directory.glance(key) != kNoFrame;
    return static_cast<u32>(most) - here;
}

TEST(WriteWaits, a_stream_of_writes_drives_out_no_page_that_is_used) {
    for (const u32 warps : {2u, 4u}) EXPECT_EQ(driven_out(warps, true), driven_out(warps, false)) << warps;
}

// A platform in which a lane that is about to mark a page as being written often comes to it late.
struct Sleepy : Warped {
    static inline std::atomic<u32> taken_back{0};  // marks undone because the frame went to another page
    static inline std::atomic<u64> drawn{1};
    template <Scope S, Order O = Order::both, class T>
    static bool swap_if(T* word, T& expected, T desired) {
        if constexpr (sizeof(T) == 4) {
            const bool marks = !(expected & kWriting) && desired & kWriting && desired & kValid;
            if (marks) {
                const u64 draw = drawn * 6364136223846793005ull + 1442695040888963407ull;
                drawn = draw;
                if (draw >> 33 & 1) Warped::pause((draw >> 40) % 60'000);
            }
            const u32 before = expected;
            const bool done = Warped::swap_if<S, O>(word, expected, desired);
            taken_back += done && before & kWriting && !(before & kDirty) && desired & kDirty && !(desired & kWriting);
            return done;
        } else {
            return Warped::swap_if<S, O>(word, expected, desired);
        }
    }
};

TEST(WriteWaits, a_mark_on_a_frame_that_became_another_pages_is_taken_back_and_that_page_stays_dirty) {
    constexpr u64 kPages = 64;
    Sleepy::taken_back = 0;
    for (u64 seed = 1; seed <= 4; ++seed) {
        Disk disk(kPages, WarpUsers::kPage);
        Outgoing out;
        CacheRig<SweepResistant, Sleepy, WarpStore> rig(shape_of(6, WarpUsers::kPage), WarpStore{&disk, &out});
        const auto cache = rig.cache();
        Warps machine({8, kLanes, seed, false});
        machine.run([&](u32 warp, u32 lane) {
            for (u64 key = warp; key < kPages; key += 8) {
                u32 frame = kNoFrame;
                Warped::sync(kAll);
                const Status got = cache.overwrite(key, kEver, frame);
                for (u64 i = lane; i < WarpUsers::kPageItems; i += kLanes)
                    set_word(cache.page(frame), i, word_of(key, i, seed));
                if (got == Status::pending) cache.filled(frame);
                cache.release(frame, true);
            }
        });
        Warps last({1, kLanes, seed, false});
        last.run([&](u32, u32) { cache.flush(kEver); });
        u32 wrong = 0;
        for (u64 key = 0; key < kPages; ++key)
            for (u64 i = 0; i < WarpUsers::kPageItems; ++i) wrong += disk.word(key, i) != word_of(key, i, seed);
        EXPECT_EQ(wrong, 0u) << "seed " << seed;
        EXPECT_EQ(rig.references(), 0u);
    }
    EXPECT_GT(Sleepy::taken_back, 0u) << "or this has not tried it";
}

}  // namespace
}  // namespace penstock::ondevice
