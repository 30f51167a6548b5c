// The page cache with many callers at once, checked by what each of them knows, with faults, tiny caches and a
// watchdog.
//
// Each caller owns one word of every page and alone stores to it, so it knows what must be there. Words of others must
// belong to this page and be no older than the caller saw them before. Afterwards the disk must hold every last store.
// Negative controls are platforms and stores with one defect each, which the same check reports.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <thread>

#include "ondevice/cache/cache_rig.hpp"
#include "ondevice/watchdog_rig.hpp"

namespace penstock::ondevice {
namespace {

constexpr u32 kThreadPage = 512;
constexpr u32 kCallers = 4;

struct Load {
    u32 frames = 8;
    u64 pages = 40;
    u32 turns = 3000;
    u32 stores = 30;  // how many of 100 turns store
    bool faults = false;
    bool flushes = true;
};

struct Findings {
    std::atomic<u32> wrong{0};    // a word that cannot be there
    std::atomic<u32> refused{0};  // a status that the load does not explain
    std::atomic<u64> done{0};
};

template <class Cache>
struct Caller {
    Cache cache;
    Disk& disk;
    const Load& load;
    Findings& findings;
    u32 self;
    // The newest version of every word that this caller saw.
    std::vector<u64> seen = std::vector<u64>(disk.pages() * kCallers, 0);
    std::mt19937 random = std::mt19937(self);

    u32 below(u32 end) { return static_cast<u32>(random() % end); }
    bool explained(Status status) const {
        if (status == Status::ok) return true;
        if (!load.faults) return false;
        return status == Status::io_error || status == Status::timed_out || status == Status::all_pinned;
    }
    void look_at(u64 key, const void* page) {
        for (u64 place = 0; place < kCallers; ++place) {
            const u64 word = word_in(page, place);
            u64& newest = seen[key * kCallers + place];
            const u64 version = word & 0xffffffffu;
            if (word != word_of(key, place, version) || version < newest || (place == self && version != newest))
                ++findings.wrong;
            newest = std::max(newest, version);
        }
        if (word_in(page, disk.words() - 1) != word_of(key, disk.words() - 1, 0)) ++findings.wrong;
    }
    void use(u64 key, bool store) {
        u32 frame = 0;
        const Status status = cache.acquire(key, soon(), frame);
        if (!explained(status)) ++findings.refused;
        if (status != Status::ok) return;
        look_at(key, cache.page(frame));
        if (store) {
            const u64 version = ++seen[key * kCallers + self];
            set_word(cache.page(frame), self, word_of(key, self, version));
        }
        cache.release(frame, store);
    }
    void turn() {
        const u64 key = below(static_cast<u32>(disk.pages()));
        const u32 what = below(1000);
        if (what < 10 && load.flushes) {
            if (!explained(cache.flush(soon()))) ++findings.refused;
        } else if (what < 20) {
            const Status status = cache.invalidate(key, 4);
            if (status != Status::ok && status != Status::busy) ++findings.refused;
        } else if (what < 60) {
            const Status status = cache.pin(key, 1, soon());
            if (status != Status::all_pinned && !explained(status)) ++findings.refused;
            if (status == Status::ok && cache.unpin(key, 1) != Status::ok) ++findings.refused;
        } else if (what < 160) {
            if (!explained(cache.prefetch(key, soon()))) ++findings.refused;
        } else if (what < 170) {
            u32 frame = 0;
            if (cache.acquire(disk.pages() + below(50), soon(), frame) == Status::ok) ++findings.refused;
        } else {
            use(key, below(100) < load.stores);
        }
        ++findings.done;
    }
};

struct Outcome {
    u32 wrong, refused, lost, misused;
    bool whole;
    u32 puts;
};

template <class Policy = SweepResistant, class P = Native, class Store = DiskStore>
Outcome run(const Load& load) {
    Disk disk(load.pages, kThreadPage);
    disk.pending_tests = 2;
    if (load.faults) {
        disk.fail_load_each = 13;
        disk.fail_put_each = 11;
    }
    CacheRig<Policy, P, Store> rig(shape_of(load.frames, kThreadPage), Store{&disk}, kCallers + 1);
    using Cache = typename CacheRig<Policy, P, Store>::Cache;
    Findings findings;
    std::vector<Caller<Cache>> callers;
    for (u32 self = 0; self < kCallers; ++self)
        callers.push_back({.cache = rig.cache(self), .disk = disk, .load = load, .findings = findings, .self = self});
    {
        const Watchdog watchdog(findings.done);
        std::vector<std::thread> threads;
        for (auto& caller : callers)
            threads.emplace_back([&caller, &load] {
                for (u32 turn = 0; turn < load.turns; ++turn) caller.turn();
            });
        for (auto& thread : threads) thread.join();
    }
    disk.fail_load_each = disk.fail_put_each = 0;
    auto last = rig.cache(kCallers);
    EXPECT_EQ(last.settle(soon()), Status::ok);
    EXPECT_EQ(last.flush(soon()), Status::ok);
    Outcome outcome{findings.wrong, findings.refused, 0, disk.misused, false, disk.puts};
    for (u32 self = 0; self < kCallers; ++self)
        for (u64 key = 0; key < load.pages; ++key)
            if (disk.word(key, self) != word_of(key, self, callers[self].seen[key * kCallers + self])) ++outcome.lost;
    outcome.whole = rig.references() == 0 && rig.every_frame_is_somewhere_once();
    return outcome;
}

void expect_sound(const Outcome& outcome) {
    EXPECT_EQ(outcome.wrong, 0u);
    EXPECT_EQ(outcome.refused, 0u);
    EXPECT_EQ(outcome.lost, 0u);
    EXPECT_EQ(outcome.misused, 0u);
    EXPECT_TRUE(outcome.whole);
}

template <class Policy>
class PageCacheThreads : public testing::Test {};
using Policies = testing::Types<SweepResistant, Clock, Fifo, PinnedRange>;
TYPED_TEST_SUITE(PageCacheThreads, Policies);

TYPED_TEST(PageCacheThreads, every_store_arrives_and_nothing_else_is_seen) { expect_sound(run<TypeParam>({})); }
TYPED_TEST(PageCacheThreads, and_with_failing_loads_and_write_backs) { expect_sound(run<TypeParam>({.faults = true})); }
TYPED_TEST(PageCacheThreads, and_with_two_frames) {
    expect_sound(run<TypeParam>({.frames = 2, .pages = 8, .turns = 1000}));
}
TYPED_TEST(PageCacheThreads, and_with_one_frame) {
    expect_sound(run<TypeParam>({.frames = 1, .pages = 3, .turns = 500}));
}
TYPED_TEST(PageCacheThreads, and_with_one_frame_and_failures) {
    expect_sound(run<TypeParam>({.frames = 1, .pages = 3, .turns = 500, .faults = true}));
}
TYPED_TEST(PageCacheThreads, reads_alone_are_never_written_back) {
    const Outcome outcome = run<TypeParam>({.stores = 0});
    expect_sound(outcome);
    EXPECT_EQ(outcome.puts, 0u);
}

// Reads plain words, so that ThreadSanitizer judges whether the load of a page, and of the next page in its frame, is
// ordered with every use. Returns how many words were wrong.
template <class P>
u32 read_plainly() {
    Disk disk(12, kThreadPage);
    disk.slow = 1;
    CacheRig<SweepResistant, P> rig(shape_of(4, kThreadPage), DiskStore{&disk}, kCallers);
    std::atomic<u32> wrong{0};
    std::vector<std::thread> threads;
    for (u32 self = 0; self < kCallers; ++self)
        threads.emplace_back([&, self] {
            auto cache = rig.cache(self);
            std::mt19937 random(self);
            for (u32 turn = 0; turn < 1000; ++turn) {
                const u64 key = random() % disk.pages();
                u32 frame = 0;
                if (cache.acquire(key, soon(), frame) != Status::ok) {
                    ++wrong;
                    continue;
                }
                const u64* const words = static_cast<const u64*>(cache.page(frame));
                for (u64 place = 0; place < disk.words(); ++place) wrong += words[place] != word_of(key, place, 0);
                cache.release(frame);
            }
        });
    for (auto& thread : threads) thread.join();
    return wrong;
}
TEST(PageCacheThreads, plain_reads_are_ordered_with_loads) { EXPECT_EQ(read_plainly<Native>(), 0u); }

// The same in the fewest steps: one caller loads a page and keeps it; a relaxed word tells another, which reads the
// page. Only the mark that the page is loaded orders its load before that use, whatever the threads do.
template <class P>
u32 read_what_another_brought() {
    Disk disk(1, kThreadPage);
    CacheRig<SweepResistant, P> rig(shape_of(4, kThreadPage), DiskStore{&disk}, 2);
    std::atomic<u32> wrong{0}, brought{0};
    std::thread reader([&] {
        while (brought.load(std::memory_order_relaxed) == 0) std::this_thread::yield();
        u32 frame = 0;
        if (rig.cache(1).acquire(0, soon(), frame) != Status::ok) return ++wrong, void();
        const u64* const words = static_cast<const u64*>(rig.cache(1).page(frame));
        for (u64 place = 0; place < disk.words(); ++place) wrong += words[place] != word_of(0, place, 0);
        rig.cache(1).release(frame);
    });
    std::thread([&] {
        u32 frame = 0;
        if (rig.cache(0).acquire(0, soon(), frame) != Status::ok) ++wrong;
        brought.store(1, std::memory_order_relaxed);
    }).join();
    reader.join();
    return wrong + (rig.references() != 1);
}
TEST(PageCacheThreads, a_plain_read_is_ordered_with_the_load_of_another) {
    EXPECT_EQ(read_what_another_brought<Native>(), 0u);
}

#if defined(__SANITIZE_THREAD__)
struct RelaxedExchanges : Native {
    template <Scope S, Order O = Order::both, class T>
    static bool swap_if(T* word, T& expected, T desired) {
        return Native::swap_if<S, Order::relaxed>(word, expected, desired);
    }
    template <Scope S, Order O = Order::both, class T>
    static T add(T* word, T value) {
        return Native::add<S, Order::relaxed>(word, value);
    }
};
TEST(PageCacheDeathTest, control_an_exchange_without_order_is_reported) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto relaxed = [] {
        read_what_another_brought<RelaxedExchanges>();
        std::exit(0);
    };
    EXPECT_EXIT(relaxed(), testing::ExitedWithCode(66), "data race");
}
#endif

// Callers hold a page each and want another. The cache is too small for all: some get a refusal, and none hangs.
TEST(PageCacheThreads, holding_one_page_while_wanting_another_ends) {
    Disk disk(24, kThreadPage);
    CacheRig<> rig(shape_of(kCallers, kThreadPage), DiskStore{&disk}, kCallers);
    std::atomic<u32> got{0}, refused{0}, other{0};
    std::vector<std::thread> threads;
    for (u32 self = 0; self < kCallers; ++self)
        threads.emplace_back([&, self] {
            auto cache = rig.cache(self);
            for (u64 turn = 0; turn < 60; ++turn) {
                u32 first = 0, second = 0;
                const Status one = cache.acquire((self * 6 + turn) % 24, soon(5), first);
                if (one != Status::ok) {
                    ++refused;
                    continue;
                }
                const Status two = cache.acquire((self * 6 + turn + 3) % 24, soon(5), second);
                if (two == Status::ok) cache.release(second);
                ++(two == Status::ok ? got : two == Status::all_pinned || two == Status::timed_out ? refused : other);
                cache.release(first);
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(other, 0u);
    EXPECT_EQ(got + refused, kCallers * 60);
    auto after = rig.cache();
    u32 frame = 0;
    EXPECT_EQ(after.acquire(1, soon(), frame), Status::ok);
    after.release(frame);
    EXPECT_EQ(rig.references(), 0u);
    EXPECT_TRUE(rig.every_frame_is_somewhere_once());
}

// Negative controls.

// A platform that loses one in fifty of the exchanges that make a page dirty.
struct Forgetful : Native {
    template <Scope S, Order O = Order::both, class T>
    static bool swap_if(T* word, T& expected, T desired) {
        static std::atomic<u32> turns{0};
        const bool dirties = sizeof(T) == 4 && (desired & kDirty) && !(expected & kDirty) && (desired & kValid);
        if (dirties && ++turns % 50 == 0) desired = static_cast<T>(desired & ~static_cast<T>(kDirty));
        return Native::swap_if<S, O>(word, expected, desired);
    }
};
TEST(PageCacheControls, a_lost_dirty_bit_is_seen) {
    const Outcome outcome = run<SweepResistant, Forgetful>({});
    EXPECT_GT(outcome.wrong + outcome.lost, 0u);
}

// A platform that makes dirty every page that is given back, like a cache that cannot tell a read from a write.
struct Marking : Native {
    template <Scope S, Order O = Order::both, class T>
    static T add(T* word, T value) {
        if (sizeof(T) == 4 && static_cast<u32>(value) == ~0u && (*word & static_cast<T>(kValid)))
            Native::set_bits<S>(word, static_cast<T>(kDirty));
        return Native::add<S, O>(word, value);
    }
};
TEST(PageCacheControls, a_read_that_makes_a_page_dirty_is_seen) {
    Disk disk(8, kThreadPage);
    CacheRig<SweepResistant, Marking> rig(shape_of(2, kThreadPage), DiskStore{&disk});
    auto cache = rig.cache();
    u32 frame = 0;
    ASSERT_EQ(cache.acquire(1, soon(), frame), Status::ok);
    cache.release(frame);
    EXPECT_EQ(cache.flush(soon()), Status::ok);
    EXPECT_GT(disk.puts, 0u);
}

// A store that says a page is there before its last word is.
struct Hasty : DiskStore {
    explicit Hasty(Disk* on) : DiskStore{on} {}
    Hasty() : DiskStore{nullptr} {}
    Status test(Lanes lanes, u32 ticket, u64 key, void* page) const {
        const u64 stale = word_in(page, disk->words() - 1);
        const Status status = DiskStore::test(lanes, ticket, key, page);
        if (status == Status::ok) set_word(page, disk->words() - 1, stale);
        return status;
    }
};
TEST(PageCacheControls, a_page_that_is_valid_before_its_bytes_are_there_is_seen) {
    const Outcome outcome = run<SweepResistant, Native, Hasty>({});
    EXPECT_GT(outcome.wrong, 0u);
}

// A store that reports one write-back in twenty as done, and does nothing.
struct Dropping : DiskStore {
    explicit Dropping(Disk* on) : DiskStore{on} {}
    Dropping() : DiskStore{nullptr} {}
    Status prepare(Lanes lanes, u64 key, const void* page, u64 deadline, u32& ticket) const {
        return disk->puts % 20 == 19 ? (++disk->puts, Status::ok)
                                     : DiskStore::prepare(lanes, key, page, deadline, ticket);
    }
};
TEST(PageCacheControls, a_write_back_that_never_was_is_seen) {
    const Outcome outcome = run<SweepResistant, Native, Dropping>({});
    EXPECT_GT(outcome.wrong + outcome.lost, 0u);
}

}  // namespace
}  // namespace penstock::ondevice
