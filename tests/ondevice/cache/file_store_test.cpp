// The page cache over the store of files: few slots, many loads that no caller waits for, answers that come late or
// never.
#include <gtest/gtest.h>

#include <chrono>

#include "ondevice/cache/cache_rig.hpp"
#include "ondevice/cache/store_server_rig.hpp"

namespace penstock::ondevice {
namespace {

constexpr u32 kStorePage = 512;

using Rig = CacheRig<Clock, Native, FileStore<Native>>;

Status stored(Rig::Cache& cache, u64 key, u64 word) {
    u32 frame = 0;
    const Status status = cache.acquire(key, soon(), frame);
    if (status != Status::ok) return status;
    set_word(cache.page(frame), 0, word);
    cache.release(frame, true);
    return status;
}

u64 loaded(Rig::Cache& cache, u64 key) {
    u32 frame = 0;
    if (cache.acquire(key, soon(), frame) != Status::ok) return ~0ull;
    const u64 word = word_in(cache.page(frame), 0);
    cache.release(frame);
    return word;
}

u64 word_at(StoreServer& server, u32 file, u64 page) {
    u64 word = 0;
    std::memcpy(&word, &server.file(file)[page * kStorePage], 8);
    return word;
}

// Loads that no caller waits for hold their slots until a caller polls them. A caller that finds no slot does so.
TEST(FileStoreTest, more_pages_are_prefetched_than_there_are_slots) {
    StoreServer server({2, kStorePage, {20 * kStorePage}});
    Rig rig(shape_of(16, kStorePage), server.store());
    auto cache = rig.cache();
    for (u64 page = 0; page < 10; ++page)
        ASSERT_EQ(cache.prefetch(page, soon(2000)), page < 2 ? Status::ok : Status::busy) << page;
    EXPECT_EQ(loaded(cache, 15), 0u) << "others can load";
    EXPECT_EQ(cache.settle(soon()), Status::ok);
}

TEST(FileStoreTest, flush_finds_a_slot_when_loads_that_nobody_waits_for_have_them_all) {
    StoreServer server({2, kStorePage, {20 * kStorePage}});
    Rig rig(shape_of(16, kStorePage), server.store());
    auto cache = rig.cache();
    ASSERT_EQ(stored(cache, 9, 77), Status::ok);
    for (u64 page = 0; page < 2; ++page) ASSERT_EQ(cache.prefetch(page, soon(2000)), Status::ok);
    EXPECT_EQ(cache.flush(soon(2000)), Status::ok);
    EXPECT_EQ(cache.settle(soon()), Status::ok);
    for (u64 page = 2; page < 4; ++page) ASSERT_EQ(cache.prefetch(page, soon(2000)), Status::ok);
    EXPECT_EQ(cache.commit(soon(2000)), Status::ok);
    EXPECT_EQ(cache.settle(soon()), Status::ok);
    server.stop();
    EXPECT_EQ(word_at(server, 0, 9), 77u);
}

// The server holds the first write-back, whose caller gives up. Then a caller stores to the page and writes it back.
TEST(FileStoreTest, a_late_write_never_lands_on_a_newer_one) {
    std::atomic<u32> writes{0};
    StoreServer server({4, kStorePage, {4 * kStorePage}}, [&](const Request& request) {
        return Fate{request.operation == RequestOperation::write && writes++ == 0 ? Fate::held : 0};
    });
    Rig rig(shape_of(4, kStorePage), server.store(), 2);
    auto cache = rig.cache();
    ASSERT_EQ(stored(cache, 1, 1), Status::ok);
    EXPECT_EQ(cache.flush(soon(20)), Status::timed_out);
    ASSERT_EQ(stored(cache, 1, 2), Status::ok);
    EXPECT_EQ(cache.flush(soon(50)), Status::timed_out) << "the first may still come";
    std::thread late([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        server.let_go();
    });
    EXPECT_EQ(cache.flush(soon()), Status::ok);
    late.join();
    server.stop();
    EXPECT_EQ(word_at(server, 0, 1), 2u);
    EXPECT_EQ(rig.references(), 0u);
}

TEST(FileStoreTest, other_pages_are_written_while_one_write_is_late) {
    std::atomic<u32> writes{0};
    StoreServer server({4, kStorePage, {4 * kStorePage, 4 * kStorePage}}, [&](const Request& request) {
        return Fate{request.operation == RequestOperation::write && writes++ == 0 ? Fate::held : 0};
    });
    Rig rig(shape_of(4, kStorePage), server.store());
    auto cache = rig.cache();
    ASSERT_EQ(loaded(cache, 2) + loaded(cache, key_of(1, 1)), 0u);  // their frames come first in a flush
    ASSERT_EQ(stored(cache, 1, 1), Status::ok);
    EXPECT_EQ(cache.flush(soon(20)), Status::timed_out);
    ASSERT_EQ(stored(cache, 2, 2), Status::ok);
    ASSERT_EQ(stored(cache, key_of(1, 1), 3), Status::ok);
    EXPECT_EQ(cache.flush(soon(50)), Status::timed_out);
    server.stop();
    EXPECT_EQ(word_at(server, 0, 2), 2u);
    EXPECT_EQ(word_at(server, 1, 1), 3u) << "the same page of another file";
}

// A load comes late, after all callers gave up on it: its bytes reach its own page or none.
TEST(FileStoreTest, a_late_load_never_lands_in_another_page) {
    std::atomic<u32> reads{0};
    const auto held_once = [&](const Request&) { return Fate{reads++ == 0 ? Fate::held : 0}; };
    StoreServer server({4, kStorePage, {64 * kStorePage}}, held_once);
    for (u64 page = 0; page < 64; ++page) std::memcpy(&server.file(0)[page * kStorePage], &page, 8);
    Rig rig(shape_of(2, kStorePage), server.store());
    auto cache = rig.cache();
    u32 frame = 0;
    EXPECT_EQ(cache.acquire(1, soon(20), frame), Status::timed_out);
    for (u64 page = 2; page < 40; ++page) ASSERT_EQ(loaded(cache, page), page) << "with the other frame";
    EXPECT_EQ(cache.acquire(1, soon(20), frame), Status::timed_out) << "it is still under way";
    server.let_go();
    for (u64 page = 0; page < 40; ++page) ASSERT_EQ(loaded(cache, page), page);
    EXPECT_EQ(cache.settle(soon()), Status::ok);
    EXPECT_EQ(rig.references(), 0u);
    EXPECT_TRUE(rig.every_frame_is_somewhere_once());
}

// If every slot is lost, every call ends at its deadline. When the answers come after all, the cache works again.
TEST(FileStoreTest, when_no_answer_comes_every_wait_ends) {
    std::atomic<bool> lost{false};
    StoreServer server({2, kStorePage, {64 * kStorePage}}, [&](const Request&) { return Fate{lost ? Fate::held : 0}; });
    Rig rig(shape_of(4, kStorePage), server.store());
    auto cache = rig.cache();
    ASSERT_EQ(stored(cache, 0, 5), Status::ok);
    lost = true;
    u32 frame = 0;
    EXPECT_EQ(cache.acquire(1, soon(20), frame), Status::timed_out);
    EXPECT_EQ(cache.flush(soon(20)), Status::timed_out);
    EXPECT_EQ(cache.acquire(2, soon(20), frame), Status::timed_out);
    EXPECT_EQ(cache.prefetch(3, soon(20)), Status::busy);
    EXPECT_EQ(cache.pin(4, 2, soon(20)), Status::timed_out);
    EXPECT_EQ(cache.settle(soon(20)), Status::timed_out);
    EXPECT_EQ(loaded(cache, 0), 5u) << "what is here stays";
    lost = false;
    server.let_go();
    EXPECT_EQ(cache.settle(soon()), Status::ok);
    EXPECT_EQ(cache.flush(soon()), Status::ok);
    EXPECT_EQ(loaded(cache, 3), 0u);
    EXPECT_EQ(cache.pin(4, 2, soon()), Status::ok);
    EXPECT_EQ(cache.unpin(4, 2), Status::ok);
    server.stop();
    EXPECT_EQ(word_at(server, 0, 0), 5u);
    EXPECT_EQ(rig.references(), 0u);
    EXPECT_TRUE(rig.every_frame_is_somewhere_once());
}

// A load fails, and a caller then overwrites the whole page in that frame: no pins are left over from the failure.
TEST(FileStoreTest, a_page_written_where_a_load_failed_is_not_pinned) {
    StoreServer server({2, kStorePage, {4 * kStorePage}}, [&](const Request& request) {
        return Fate{0, request.operation == RequestOperation::read};
    });
    Rig rig(shape_of(1, kStorePage), server.store());
    auto cache = rig.cache();
    u32 frame = 0;
    EXPECT_EQ(cache.acquire(1, soon(), frame), Status::io_error);
    ASSERT_EQ(cache.overwrite(2, soon(), frame), Status::pending);
    set_word(cache.page(frame), 0, 9);
    cache.filled(frame);
    cache.release(frame, true);
    EXPECT_EQ(cache.unpin(2, 1), Status::invalid);
    EXPECT_EQ(rig.references(), 0u);
    EXPECT_EQ(rig.pool().shared->pins, 0u);
}

}  // namespace
}  // namespace penstock::ondevice
