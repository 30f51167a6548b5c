// The page cache with one caller: what a page costs, when it is written back, and which status each refusal gives.
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "ondevice/cache/cache_rig.hpp"

namespace penstock::ondevice {
namespace {

constexpr u32 kCachePage = 512;

struct PageCache : testing::Test {
    Disk disk{64, kCachePage};
    CacheRig<> rig{shape_of(4, kCachePage), DiskStore{&disk}};
    CacheRig<>::Cache cache = rig.cache();

    Status read(u64 key) {
        u32 frame = 0;
        const Status status = cache.acquire(key, soon(50), frame);
        if (status != Status::ok) return status;
        for (u64 place = 0; place < disk.words(); ++place)
            EXPECT_EQ(word_in(cache.page(frame), place), word_of(key, place, 0)) << key;
        cache.release(frame);
        return Status::ok;
    }
    Status write(u64 key, u64 version) {
        u32 frame = 0;
        const Status status = cache.acquire(key, soon(50), frame);
        if (status != Status::ok) return status;
        set_word(cache.page(frame), 3, word_of(key, 3, version));
        cache.release(frame, true);
        return Status::ok;
    }
    void TearDown() override {
        EXPECT_EQ(cache.settle(soon()), Status::ok);
        EXPECT_EQ(rig.references(), 0u);
        EXPECT_TRUE(rig.every_frame_is_somewhere_once());
        EXPECT_EQ(disk.misused, 0u);
    }
};

TEST_F(PageCache, a_page_is_loaded_once_and_found_again) {
    EXPECT_EQ(read(5), Status::ok);
    EXPECT_EQ(read(5), Status::ok);
    EXPECT_EQ(disk.loads, 1u);
    EXPECT_EQ(rig.total().hits, 1u);
    EXPECT_EQ(rig.total().misses, 1u);
}

TEST_F(PageCache, more_pages_than_frames_come_and_go) {
    for (u32 turn = 0; turn < 5; ++turn)
        for (u64 key = 0; key < disk.pages(); ++key) ASSERT_EQ(read(key), Status::ok);
    EXPECT_EQ(rig.total().misses - rig.total().evictions, 4u);
}

TEST_F(PageCache, reads_never_lead_to_a_write_back) {
    for (u64 key = 0; key < disk.pages(); ++key) ASSERT_EQ(read(key), Status::ok);
    EXPECT_EQ(cache.flush(soon()), Status::ok);
    EXPECT_EQ(disk.puts, 0u);
    EXPECT_EQ(disk.commits, 1u);
}

TEST_F(PageCache, only_the_page_that_was_stored_to_is_written_back_and_once) {
    ASSERT_EQ(read(1), Status::ok);
    ASSERT_EQ(write(2, 7), Status::ok);
    ASSERT_EQ(read(2 + 32), Status::ok);
    EXPECT_EQ(cache.flush(soon()), Status::ok);
    EXPECT_EQ(cache.flush(soon()), Status::ok);
    EXPECT_EQ(disk.puts, 1u);
    EXPECT_EQ(disk.word(2, 3), word_of(2, 3, 7));
}

TEST_F(PageCache, a_dirty_victim_is_written_back_before_it_goes) {
    ASSERT_EQ(write(2, 9), Status::ok);
    for (u64 key = 10; key < 60; ++key) ASSERT_EQ(read(key), Status::ok);
    EXPECT_EQ(disk.puts, 1u);
    EXPECT_EQ(disk.word(2, 3), word_of(2, 3, 9));
}

TEST_F(PageCache, what_could_not_be_written_back_stays_dirty_and_is_told) {
    ASSERT_EQ(write(2, 9), Status::ok);
    disk.fail_put_each = 1;
    EXPECT_EQ(cache.flush(soon()), Status::io_error);
    EXPECT_EQ(disk.word(2, 3), word_of(2, 3, 0));
    for (u64 key = 10; key < 60; ++key) ASSERT_EQ(read(key), Status::ok);  // other frames serve these pages
    disk.fail_put_each = 0;
    EXPECT_EQ(cache.flush(soon()), Status::ok);
    EXPECT_EQ(disk.word(2, 3), word_of(2, 3, 9));
}

TEST_F(PageCache, no_room_but_pages_that_cannot_be_written_is_their_failure) {
    for (u64 key = 0; key < 4; ++key) ASSERT_EQ(write(key, 1), Status::ok);
    disk.fail_put_each = 1;
    EXPECT_EQ(read(20), Status::io_error);
    disk.fail_put_each = 0;
    EXPECT_EQ(read(20), Status::ok);
}

TEST_F(PageCache, a_commit_that_fails_fails_the_flush) {
    disk.fail_commit = 1;
    EXPECT_EQ(cache.flush(soon()), Status::io_error);
}

TEST_F(PageCache, a_failed_load_leaves_nothing_and_can_be_tried_again) {
    disk.fail_load_each = 1;
    EXPECT_EQ(read(3), Status::io_error);
    disk.fail_load_each = 0;
    EXPECT_EQ(read(3), Status::ok);
    EXPECT_EQ(rig.total().failures, 1u);
}

TEST_F(PageCache, keys_out_of_range_are_refused) {
    for (u32 turn = 0; turn < 20; ++turn) {
        EXPECT_EQ(read(64 + turn), Status::out_of_range);
        EXPECT_EQ(read(key_of(3, turn)), Status::out_of_range);
    }
    EXPECT_EQ(read(kNoKey), Status::out_of_range);
    EXPECT_EQ(read(1), Status::ok);
}

TEST_F(PageCache, when_every_page_is_held_the_next_is_refused_at_the_deadline) {
    u32 frames[5];
    for (u64 key = 0; key < 4; ++key) ASSERT_EQ(cache.acquire(key, soon(), frames[key]), Status::ok);
    EXPECT_EQ(cache.acquire(9, soon(5), frames[4]), Status::all_pinned);
    EXPECT_EQ(cache.acquire(2, soon(), frames[4]), Status::ok);  // a page that is here still comes
    cache.release(frames[4]);
    cache.release(frames[1]);
    EXPECT_EQ(read(9), Status::ok);
    for (const u32 at : {0, 2, 3}) cache.release(frames[at]);
}

// A page that is being overwritten does not end by itself as a load does: its caller may need another page to fill it.
TEST_F(PageCache, another_page_comes_while_one_is_being_overwritten) {
    cache.advise(0, Advice::sweep);
    for (u64 key = 0; key < 4; ++key) ASSERT_EQ(read(key), Status::ok);
    for (u64 turn = 0; turn < 40; ++turn) {
        u32 frame = 0;
        ASSERT_EQ(cache.overwrite(50, soon(), frame), Status::pending);
        EXPECT_EQ(read(10 + turn % 20), Status::ok) << turn;
        for (u64 place = 0; place < disk.words(); ++place) set_word(cache.page(frame), place, word_of(50, place, 0));
        EXPECT_EQ(cache.flush(soon(50)), Status::ok);
        cache.filled(frame);
        cache.release(frame, true);
        EXPECT_EQ(cache.flush(soon()), Status::ok);
        EXPECT_EQ(cache.invalidate(50, 1), Status::ok);
        EXPECT_EQ(read(40 + turn % 8), Status::ok);
    }
}

TEST_F(PageCache, a_store_that_never_answers_is_a_time_out_and_its_late_bytes_hit_no_other_page) {
    disk.stalled = 1;
    for (u64 key = 0; key < 4; ++key) EXPECT_EQ(cache.prefetch(key, soon(5)), Status::ok);
    u32 frame = 0;
    EXPECT_EQ(cache.acquire(1, soon(5), frame), Status::timed_out);
    EXPECT_EQ(cache.acquire(9, soon(5), frame), Status::timed_out);  // every frame still belongs to the store
    disk.stalled = 0;
    EXPECT_EQ(read(9), Status::ok);
    EXPECT_EQ(read(1), Status::ok);
}

TEST_F(PageCache, a_full_store_is_waited_for_until_the_deadline) {
    disk.full = 1;
    EXPECT_EQ(read(1), Status::timed_out);
    disk.full = 0;
    EXPECT_EQ(read(1), Status::ok);
}

TEST_F(PageCache, prefetch_begins_and_acquire_finishes) {
    disk.pending_tests = 3;
    EXPECT_EQ(cache.prefetch(7, soon()), Status::ok);
    EXPECT_EQ(cache.prefetch(7, soon()), Status::ok);
    EXPECT_EQ(disk.loads, 1u);
    EXPECT_EQ(read(7), Status::ok);
    EXPECT_EQ(disk.loads, 1u);
    EXPECT_EQ(cache.prefetch(99, soon()), Status::out_of_range);
}

TEST_F(PageCache, prefetched_pages_that_nobody_wants_make_room) {
    disk.pending_tests = 2;
    for (u64 key = 0; key < 40; ++key) ASSERT_EQ(cache.prefetch(key, soon()), Status::ok) << key;
}

TEST_F(PageCache, a_prefetch_that_fails_fails_nobody_else) {
    disk.fail_load_each = 1;
    EXPECT_EQ(cache.prefetch(7, soon()), Status::ok);
    EXPECT_EQ(cache.settle(soon()), Status::ok);
    disk.fail_load_each = 0;
    EXPECT_EQ(read(7), Status::ok);
}

TEST_F(PageCache, pinned_pages_stay_and_the_quota_holds) {
    ASSERT_EQ(cache.pin(10, 2, soon()), Status::ok);
    for (u64 key = 20; key < 60; ++key) ASSERT_EQ(read(key), Status::ok);
    const u32 loads = disk.loads;
    EXPECT_EQ(read(10), Status::ok);
    EXPECT_EQ(read(11), Status::ok);
    EXPECT_EQ(disk.loads, loads);
    EXPECT_EQ(cache.pin(30, 2, soon()), Status::all_pinned);  // the quota is 3 of 4 frames
    EXPECT_EQ(cache.pin(30, ~0u, soon()), Status::all_pinned);
    EXPECT_EQ(cache.pin(30, 1, soon()), Status::ok);
    EXPECT_EQ(cache.unpin(10, 2), Status::ok);
    EXPECT_EQ(cache.unpin(10, 2), Status::invalid);
    EXPECT_EQ(cache.unpin(30, 1), Status::ok);
    EXPECT_EQ(cache.pin(40, 3, soon()), Status::ok);
    EXPECT_EQ(cache.unpin(40, 3), Status::ok);
}

TEST_F(PageCache, a_pin_that_fails_half_way_keeps_nothing) {
    EXPECT_EQ(cache.pin(62, 3, soon()), Status::out_of_range);
    EXPECT_EQ(rig.references(), 0u);
    EXPECT_EQ(cache.pin(10, 3, soon()), Status::ok);
    EXPECT_EQ(cache.unpin(10, 3), Status::ok);
}

TEST_F(PageCache, invalidate_drops_clean_pages_and_refuses_others) {
    ASSERT_EQ(read(1), Status::ok);
    ASSERT_EQ(write(2, 4), Status::ok);
    u32 frame = 0;
    ASSERT_EQ(cache.acquire(3, soon(), frame), Status::ok);
    EXPECT_EQ(cache.invalidate(1, 1), Status::ok);
    EXPECT_EQ(cache.invalidate(0, 64), Status::busy);
    cache.release(frame);
    EXPECT_EQ(cache.flush(soon()), Status::ok);
    EXPECT_EQ(cache.invalidate(0, 64), Status::ok);
    const u32 loads = disk.loads;
    EXPECT_EQ(read(1), Status::ok);
    EXPECT_EQ(read(3), Status::ok);
    EXPECT_EQ(disk.loads, loads + 2);
}

TEST(PageCacheOfOneFrame, serves_one_page_at_a_time) {
    Disk disk(8, kCachePage);
    CacheRig<> rig(shape_of(1, kCachePage), DiskStore{&disk});
    auto cache = rig.cache();
    u32 frame = 0, other = 0;
    for (u64 key = 0; key < 8; ++key) {
        ASSERT_EQ(cache.acquire(key, soon(), frame), Status::ok);
        set_word(cache.page(frame), 0, word_of(key, 0, 1));
        EXPECT_EQ(cache.acquire((key + 1) % 8, soon(2), other), Status::all_pinned);
        cache.release(frame, true);
    }
    EXPECT_EQ(cache.flush(soon()), Status::ok);
    for (u64 key = 0; key < 8; ++key) EXPECT_EQ(disk.word(key, 0), word_of(key, 0, 1));
    EXPECT_EQ(disk.puts, 8u);
}

TEST(CacheShape, costs_what_was_promised_and_refuses_what_cannot_be) {
    const CacheShape shape = shape_of(1u << 20, 4096);
    EXPECT_TRUE(shape.usable());
    EXPECT_LE(shape.state_bytes(), u64{64} * shape.frames + u64{16} * shape.buckets);
    EXPECT_LT(shape.state_bytes(), u64{45} * shape.frames);
    EXPECT_TRUE(shape_of(3, 2u << 20).usable());
    EXPECT_FALSE(shape_of(0, 4096).usable());
    EXPECT_FALSE(shape_of(4, 256).usable());
    EXPECT_FALSE(shape_of(4, 4u << 20).usable());
    EXPECT_FALSE(shape_of(4, 3000).usable());
    EXPECT_FALSE((CacheShape{4, 3, 1, 4096}.usable()));
    EXPECT_FALSE((CacheShape{4, 4, 5, 4096}.usable()));
}

// Lets the test do something between a caller's look at a frame and its taking a reference.
struct Interrupted : Native {
    static inline std::function<void()> before_exchange;
    template <Scope S, Order O = Order::both, class T>
    static T add(T* word, T value) {
        if (O == Order::acquire)
            if (const auto first = std::exchange(before_exchange, nullptr)) first();
        return Native::add<S, O>(word, value);
    }
};

TEST(PageCacheHit, a_frame_that_goes_to_another_page_meanwhile_is_not_taken_for_the_first) {
    Disk disk(8, kCachePage);
    CacheRig<Fifo, Interrupted> rig(shape_of(1, kCachePage), DiskStore{&disk}, 2);
    auto cache = rig.cache(), other = rig.cache(1);
    const auto visit = [](auto& by, u64 key) {
        u32 frame = 0;
        ASSERT_EQ(by.acquire(key, soon(), frame), Status::ok);
        EXPECT_EQ(word_in(by.page(frame), 1), word_of(key, 1, 0));
        by.release(frame);
    };
    visit(cache, 1);
    Interrupted::before_exchange = [&] { visit(other, 2); };
    visit(cache, 1);
    EXPECT_FALSE(Interrupted::before_exchange);
    EXPECT_EQ(disk.loads, 3u);
    EXPECT_EQ(rig.references(), 0u);
}

// Interrupts the store when it takes a page to write it back: what a caller stores from then on is not lost.
struct Late : DiskStore {
    std::function<void()>* during;
    Status prepare(Lanes lanes, u64 key, const void* page, u64 deadline, u32& ticket) const {
        const Status status = DiskStore::prepare(lanes, key, page, deadline, ticket);
        if (const auto first = std::exchange(*during, nullptr)) first();
        return status;
    }
};

TEST(PageCacheFlush, a_store_after_the_bytes_were_taken_makes_the_page_dirty_again) {
    Disk disk(8, kCachePage);
    std::function<void()> during;
    CacheRig<Fifo, Native, Late> rig(shape_of(2, kCachePage), Late{{&disk}, &during}, 2);
    auto cache = rig.cache(), other = rig.cache(1);
    const auto store = [](auto& by, u64 version) {
        u32 frame = 0;
        ASSERT_EQ(by.acquire(3, soon(), frame), Status::ok);
        set_word(by.page(frame), 0, word_of(3, 0, version));
        by.release(frame, true);
    };
    store(cache, 1);
    during = [&] {
        store(other, 2);
        EXPECT_EQ(other.invalidate(3, 1), Status::busy);
    };
    EXPECT_EQ(cache.flush(soon()), Status::ok);
    EXPECT_EQ(disk.word(3, 0), word_of(3, 0, 1));
    EXPECT_EQ(cache.flush(soon()), Status::ok);
    EXPECT_EQ(disk.word(3, 0), word_of(3, 0, 2));
    EXPECT_EQ(disk.puts, 2u);
}

// A store that has fetch alone, through the adapter.
struct Plain {
    u64 pages;
    Status fetch(u64 key, void* page, u64) const {
        if (key >= pages) return Status::out_of_range;
        std::memset(page, static_cast<int>(key), kCachePage);
        return Status::ok;
    }
    Status put(u64, const void*, u64) const { return Status::read_only; }
    Status commit(u64) const { return Status::ok; }
};

TEST(ImmediateStore, serves_and_its_refusals_come_through) {
    Plain plain{8};
    CacheRig<Clock, Native, Immediate<Native, Plain>> rig(shape_of(2, kCachePage), {&plain});
    auto cache = rig.cache();
    u32 frame = 0;
    for (u64 key = 0; key < 8; ++key) {
        ASSERT_EQ(cache.acquire(key, soon(), frame), Status::ok);
        EXPECT_EQ(static_cast<const u8*>(cache.page(frame))[kCachePage - 1], key);
        cache.release(frame);
    }
    EXPECT_EQ(cache.acquire(8, soon(), frame), Status::out_of_range);
    ASSERT_EQ(cache.acquire(1, soon(), frame), Status::ok);
    cache.release(frame, true);
    EXPECT_EQ(cache.flush(soon()), Status::read_only);
    EXPECT_STREQ(words(Status::read_only), "the file or range is read-only");
}

}  // namespace
}  // namespace penstock::ondevice
