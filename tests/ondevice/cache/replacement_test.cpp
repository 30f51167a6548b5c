// Hit rates of the replacement policies on the traces that programs on GPUs make, with bounds; the tests record the
// rates as properties. Negative controls are clock and FIFO, which hit nothing on a sweep.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "ondevice/cache/cache_rig.hpp"

namespace penstock::ondevice {
namespace {

constexpr u32 kPages = 1000;
constexpr u32 kFramePage = 512;

using Trace = std::vector<u32>;  // the page of each touch
struct Replayed {
    const Trace* trace;
    u32 frames;
    u32 probation;
    u32 touches_a_visit = 1;
    u32 held_touches = 0;  // a page stays held for so many touches after its own
    Advice advice = Advice::none;
    u32 kept = 0;  // pages of PinnedRange
};

// The rate of hits a visit: a page that is loaded twice in a visit counts against it. The first quarter does not count.
template <class Policy>
double hit_rate(const Replayed& run) {
    Disk disk(kPages, kFramePage);
    CacheShape shape = shape_of(run.frames, kFramePage);
    shape.probation = run.probation;
    CacheRig<Policy> rig(shape, DiskStore{&disk});
    auto cache = rig.cache();
    PinnedRange::keep(rig.pool(), 0, run.kept);
    cache.advise(0, run.advice);
    std::deque<u32> held;
    u32 before = 0, counted = 0;
    for (size_t at = 0; at < run.trace->size(); ++at) {
        if (at == run.trace->size() / 4) {
            before = disk.loads;
            counted = static_cast<u32>(run.trace->size() - at) / run.touches_a_visit;
        }
        u32 frame = 0;
        EXPECT_EQ(cache.acquire((*run.trace)[at], soon(), frame), Status::ok);
        held.push_back(frame);
        if (held.size() <= run.held_touches) continue;
        cache.release(held.front());
        held.pop_front();
    }
    for (const u32 frame : held) cache.release(frame);
    EXPECT_TRUE(rig.every_frame_is_somewhere_once());
    EXPECT_EQ(rig.references(), 0u);
    const double rate = 1.0 - static_cast<double>(disk.loads - before) / counted;
    return rate;
}

void shuffle_windows(Trace& trace, size_t window) {
    std::mt19937 random(7);
    for (size_t at = 0; at < trace.size(); at += window)
        std::shuffle(trace.begin() + static_cast<long>(at),
                     trace.begin() + static_cast<long>(std::min(at + window, trace.size())), random);
}
Trace cyclic(u32 sweeps = 40) {
    Trace trace;
    for (u32 sweep = 0; sweep < sweeps; ++sweep)
        for (u32 page = 0; page < kPages; ++page) trace.push_back(page);
    return trace;
}
Trace jittered() {
    Trace trace = cyclic();
    shuffle_windows(trace, 64);
    return trace;
}
Trace zigzag() {
    Trace trace = cyclic();
    for (size_t sweep = 1; sweep < 40; sweep += 2)
        std::reverse(trace.begin() + static_cast<long>(sweep * kPages),
                     trace.begin() + static_cast<long>((sweep + 1) * kPages));
    return trace;
}
Trace zipf(u32 visits = 40'000) {
    std::vector<double> weights(kPages);
    for (u32 page = 0; page < kPages; ++page) weights[page] = 1.0 / (page + 1);
    std::discrete_distribution<u32> page(weights.begin(), weights.end());
    std::mt19937 random(3);
    Trace trace;
    for (u32 visit = 0; visit < visits; ++visit) trace.push_back(page(random) * 617 % kPages);
    return trace;
}
// Makes each visit four touches by different warps, in any order within so many visits.
Trace by_warps(const Trace& visits, size_t window) {
    Trace trace;
    for (const u32 page : visits) trace.insert(trace.end(), 4, page);
    shuffle_windows(trace, window * 4);
    return trace;
}

// Runs the default policy on visits in order, with a cache of half the data.
Replayed half(const Trace& trace, Advice advice = Advice::none) {
    return {&trace, 500, shape_of(500, kFramePage).probation, 1, 0, advice, 0};
}
// Runs it on touches by warps: 64 pages are in flight, so the probation part is a little larger.
Replayed warps(const Trace& trace, u32 frames, Advice advice = Advice::none) {
    return {&trace, frames, 80, 4, 64, advice, 0};
}

void tell(const std::string& what, double rate) { testing::Test::RecordProperty(what, std::to_string(rate)); }

TEST(Replacement, a_sweep_over_twice_the_cache_hits) {
    const Trace in_order = cyclic(), shuffled = jittered(), there_and_back = zigzag();
    for (const Trace* trace : {&in_order, &shuffled, &there_and_back}) {
        const double without = hit_rate<SweepResistant>(half(*trace));
        const double with = hit_rate<SweepResistant>(half(*trace, Advice::sweep));
        tell("without", without);
        tell("with", with);
        EXPECT_GE(without, 0.44);
        EXPECT_GE(with, 0.46);
    }
}

TEST(Replacement, and_when_warps_touch_pages_several_times_in_no_order_and_hold_them) {
    const Trace in_order = by_warps(cyclic(), 64), there_and_back = by_warps(zigzag(), 64);
    struct Bound {
        u32 frames;
        double without, with;
    };
    for (const Bound& bound : {Bound{250, 0.12, 0.15}, {500, 0.40, 0.405}, {900, 0.80, 0.81}}) {
        EXPECT_GE(hit_rate<SweepResistant>(warps(in_order, bound.frames)), bound.without);
        EXPECT_GE(hit_rate<SweepResistant>(warps(in_order, bound.frames, Advice::sweep)), bound.with);
        EXPECT_GE(hit_rate<SweepResistant>(warps(there_and_back, bound.frames)), bound.without);
    }
}

TEST(Replacement, clock_and_fifo_get_nothing_out_of_a_sweep) {
    const Trace in_order = cyclic(10);
    EXPECT_LE(hit_rate<Fifo>(half(in_order)), 0.01);
    EXPECT_LE(hit_rate<Clock>(half(in_order)), 0.01);
}

TEST(Replacement, a_kept_range_hits_exactly_and_the_rest_never) {
    const Trace in_order = cyclic(12);
    EXPECT_NEAR(hit_rate<PinnedRange>({&in_order, 500, 1, 1, 0, Advice::none, 499}), 0.499, 1e-9);
    EXPECT_NEAR(hit_rate<PinnedRange>({&in_order, 500, 20, 1, 0, Advice::none, 480}), 0.480, 1e-9);
}

TEST(Replacement, skew_is_kept_better_than_by_a_clock) {
    const Trace visits = zipf(), touches = by_warps(visits, 16);
    const double clock = hit_rate<Clock>({&visits, 100, 12});
    const double usual = hit_rate<SweepResistant>({&visits, 100, 12});
    tell("clock", clock);
    tell("default", usual);
    EXPECT_GE(usual, clock + 0.04);
    EXPECT_GE(hit_rate<SweepResistant>({&visits, 100, 12, 1, 0, Advice::random}), usual);
    EXPECT_GE(hit_rate<SweepResistant>({&touches, 100, 20, 4, 16}), hit_rate<Clock>({&touches, 100, 20, 4, 16}) + 0.05);
}

// Two arrays share a cache: users touch some pages of one often, and read the other once. Advice keeps the second out.
TEST(Replacement, what_is_read_once_does_not_drive_out_what_is_used) {
    const auto loads_of_used = [](Advice advice) {
        Disk disk(u64{2} << kPageBits, 0);  // pages without bytes, since keys alone matter
        CacheRig<> rig(shape_of(128, kFramePage), DiskStore{&disk});
        auto cache = rig.cache();
        cache.advise(1, advice);
        const Trace used = zipf(20'000);
        u32 loads = 0;
        for (u32 at = 0; at < used.size(); ++at)
            for (const u64 key : {key_of(0, used[at]), key_of(1, at)}) {
                u32 frame = 0;
                const u32 before = disk.loads;
                EXPECT_EQ(cache.acquire(key, soon(), frame), Status::ok);
                cache.release(frame);
                if (array_of(key) == 0) loads += disk.loads - before;
            }
        return loads;
    };
    const u32 usual = loads_of_used(Advice::none), advised = loads_of_used(Advice::once);
    tell("usual", usual);
    tell("advised", advised);
    EXPECT_LT(advised, usual);
}

// How many slots a miss looks at for its victim, over a sweep with so much of the cache pinned. On a GPU each slot
// costs about two microseconds, while a page waits.
double slots_a_miss(u32 pinned) {
    Disk disk(2 * kPages, kFramePage);
    CacheRig<> rig(shape_of(kPages, kFramePage), DiskStore{&disk});
    auto cache = rig.cache();
    cache.advise(0, Advice::sweep);
    cache.quota = pinned;
    EXPECT_EQ(cache.pin(0, pinned, soon()), Status::ok);
    const auto sweep = [&] {
        for (u32 page = 0; page < 2 * kPages; ++page) {
            u32 frame = 0;
            EXPECT_EQ(cache.acquire(page, soon(), frame), Status::ok);
            cache.release(frame);
        }
    };
    sweep();
    const Shared& hands = *rig.still().shared;
    const u32 looked = hands.main_hand + hands.probation_hand, loads = disk.loads;
    for (u32 turn = 0; turn < 4; ++turn) sweep();
    return static_cast<double>(hands.main_hand + hands.probation_hand - looked) / (disk.loads - loads);
}

TEST(Replacement, a_sweep_looks_at_few_slots_for_room_however_much_is_pinned) {
    tell("none pinned", slots_a_miss(0));
    tell("nearly all pinned", slots_a_miss(960));
    EXPECT_LE(slots_a_miss(0), 1.5);
    EXPECT_LE(slots_a_miss(500), 1.5);
    EXPECT_LE(slots_a_miss(930), 1.5);
    EXPECT_LE(slots_a_miss(960), 3.0);  // a third of the probation part is pinned too
}

// The hit rate if more callers have loads under way than the probation part has frames. A load ends after it was polled
// `asked` times.
double sweep_of_many(Advice advice, u32 asked) {
    constexpr u32 kCallers = 48, kOnce = 256, kSweeps = 16;
    Disk disk(kOnce, kFramePage);
    disk.slow = 1;
    disk.pending_tests = asked;
    CacheRig<> rig(shape_of(128, kFramePage), DiskStore{&disk}, kCallers);
    rig.cache().advise(0, advice);
    std::atomic<u32> next{0};
    std::vector<std::thread> callers;
    for (u32 caller = 0; caller < kCallers; ++caller) {
        callers.emplace_back([&, caller] {
            auto cache = rig.cache(caller);
            for (u32 at = next++; at < kOnce * kSweeps; at = next++) {
                u32 frame = 0;
                EXPECT_EQ(cache.acquire(at % kOnce, soon(), frame), Status::ok);
                cache.release(frame);
            }
        });
    }
    for (std::thread& caller : callers) caller.join();
    return 1.0 - static_cast<double>(disk.loads) / (kOnce * kSweeps);
}

TEST(Replacement, a_sweep_by_more_callers_than_are_on_probation_keeps_its_part) {
    for (const u32 asked : {0u, 100u}) {
        const double with = sweep_of_many(Advice::sweep, asked), without = sweep_of_many(Advice::none, asked);
        tell("many with", with);
        tell("many without", without);
        EXPECT_GE(with, 0.35) << asked;
        EXPECT_GE(without, 0.2) << asked;
    }
}

}  // namespace
}  // namespace penstock::ondevice
