// Which page goes when another comes: what policies share, and the simple policies.
//
// Frames stand in an order of slots. The last `probation` slots are the probation part, the others the main part. Pages
// that are pinned in an empty cache fill the main part first, so the probation part is left to pages that come and go.
// A policy takes a victim by moving a hand over slots, and says what a touch does to the state word. All hands are
// words in GPU memory that only misses move; a touch writes nothing but the state word, which it exchanges anyway.
#pragma once

#include "penstock/ondevice/cache/directory.hpp"

namespace penstock::ondevice {

// How pages of an array will be used. sweep: in about the same order again and again; random: some more often than
// others, in no order; once: not again soon.
enum class Advice : u8 { none, sweep, random, once };

inline constexpr u32 kAdvisedArrays = 64;  // arrays of higher numbers go without advice
// How many slots one search for a victim looks at: kScan if the caller needs a victim; kShortScan if it has seen a page
// that may soon be free; kGlance if it could do without. Each slot is three accesses to memory in a row, while a caller
// waits.
inline constexpr u32 kScan = 256, kShortScan = 64, kGlance = 8;

// The stacks of free frames that a cache of many pages has. With one stack, thousands of warps that fill an emptied
// cache would stand in line for its top.
inline constexpr u32 kFreeStacks = 64;
PENSTOCK_ONDEVICE u32 free_stacks(u32 frames) { return frames < 64 * kFreeStacks ? 1 : kFreeStacks; }

// What all callers of a cache share, in GPU memory. It starts as zeros, but for `free`.
struct alignas(64) Shared {
    u64 free[kFreeStacks];
    u64 unused[2];
    u32 main_hand;
    u32 probation_hand;
    u32 draws;
    u32 pins;
    u32 together;    // pages of callers that wait while they hold some
    u64 keep_first;  // PinnedRange: keys from here
    u64 keep_end;    // to before here stay
    u32 advice[kAdvisedArrays];
};

// The policies that a cache can choose from when it is made (replacement_any.hpp).
enum class Replacement : u8 { sweep_resistant, clock, fifo, pinned_range };

struct Victim {
    // leaving: dirty, and another caller writes it back. busy: a page may soon be free. held: all are in use.
    enum class Kind : u8 { taken, dirty, leaving, in_flight, busy, held };
    Kind kind;
    u32 frame;
    u32 state = 0;  // if taken: the state before
};

// The page that a caller wants a frame for, and whether the caller has asked before and found no victim.
struct Miss {
    u64 key;
    bool again;
};

template <class P>
struct Pool {
    Directory<P> directory;
    u32* slots;  // the frame of each slot; a caller may change it if it has claimed that frame
    Shared* shared;
    u32 probation;
    Replacement chosen = Replacement::sweep_resistant;

    PENSTOCK_ONDEVICE Frame& frame(u32 index) const { return directory.frames[index]; }
    PENSTOCK_ONDEVICE u32 frames() const { return directory.frame_count; }
    PENSTOCK_ONDEVICE u32 at(u32 slot) const { return P::template load<Scope::device>(&slots[slot]); }
    PENSTOCK_ONDEVICE Advice advice(u64 key) const {
        const u32 array = array_of(key);
        if (array >= kAdvisedArrays) return Advice::none;
        return static_cast<Advice>(P::template load<Scope::device>(&shared->advice[array]));
    }

    struct Section {
        u32* hand;
        u32 first;
        u32 slots;
        // Pages go in their order: a caller that comes to a page which another writes back waits for that frame. If
        // callers went past it, they would come round to pages that came just now, and write them without the pages
        // beside them.
        bool queue = false;
    };
    PENSTOCK_ONDEVICE Section whole() const { return {&shared->main_hand, 0, frames()}; }
    PENSTOCK_ONDEVICE Section main() const { return {&shared->main_hand, 0, frames() - probation}; }
    PENSTOCK_ONDEVICE Section trial() const { return {&shared->probation_hand, frames() - probation, probation, true}; }
    PENSTOCK_ONDEVICE bool on_trial(u32 slot) const { return slot >= frames() - probation; }

    // Moves the part's hand over at most `steps` slots, until `spared(slot, frame, state)` is false for a frame that
    // the caller can have. A dirty page or one in flight ends the search too; the caller writes it back, or finishes
    // its load.
    template <class Spared>
    PENSTOCK_ONDEVICE Victim search(Section part, u32 steps, const Spared& spared) const {
        Victim seen{Victim::Kind::held, kNoFrame};
        // Two rounds are enough: a page that was spared for its touches is not spared again.
        for (u32 step = 0; step < steps && step / 2 < part.slots; ++step) {
            if (seen.kind != Victim::Kind::held && step >= kShortScan) break;
            const u32 slot = part.first + P::template add<Scope::device, Order::relaxed>(part.hand, 1u) % part.slots;
            const u32 index = at(slot);
            u32 state = FrameState<P>::load(frame(index));
            const bool leaving = (state & (kWriting | kReferences)) == (kWriting | 1);  // a reference: its writer's
            if (leaving && part.queue) return {Victim::Kind::leaving, index};
            if (state & kReferences || spared(slot, index, state)) {
                // A page that is busy and dirty is being overwritten, which may take long: it counts as held.
                const bool soon = leaving || (state & kBusy && !(state & kDirty));
                if (soon) seen = {state & kInFlight ? Victim::Kind::in_flight : Victim::Kind::busy, index};
                continue;
            }
            switch (FrameState<P>::claim(frame(index), state)) {
                case FrameState<P>::Claim::taken:
                    return {Victim::Kind::taken, index, state};
                case FrameState<P>::Claim::dirty:
                    return {Victim::Kind::dirty, index};
                case FrameState<P>::Claim::in_flight:
                    return {Victim::Kind::in_flight, index};
                case FrameState<P>::Claim::busy:
                    seen = {Victim::Kind::busy, index};
                    break;
                case FrameState<P>::Claim::held:
                    break;
            }
        }
        return seen;
    }

    // A dirty page without references that the hand of the probation part comes to soon, or kNoFrame. It looks in steps
    // of `stride`. It leaves out a page that came late: callers may still be making the pages beside it, and it would
    // go without them.
    PENSTOCK_ONDEVICE u32 next_to_go(u32 stride) const {
        const Section part = trial();
        const u32 hand = P::template load<Scope::device, Order::relaxed>(part.hand);
        for (u32 step = 0, looks = 0; step < part.slots / 2 && looks < kGlance; step += stride, ++looks) {
            const Frame& one = frame(at(part.first + (hand + step) % part.slots));
            constexpr u32 kAll = kValid | kBusy | kDirty | kWriting | kReferenced | kFailed | kReferences;
            const u32 came = P::template load<Scope::device, Order::relaxed>(&one.policy);
            if ((FrameState<P>::load(one) & kAll) == (kValid | kDirty) && hand - came >= part.slots * 5 / 8)
                return static_cast<u32>(&one - directory.frames);
        }
        return kNoFrame;
    }
};

// Takes pages in the order of their frames, as BaM does. It is for comparison.
struct Fifo {
    template <class P>
    static PENSTOCK_ONDEVICE u32 touched(const Pool<P>&, u32, u32 state) {
        return state;
    }
    template <class P>
    static PENSTOCK_ONDEVICE void loaded(const Pool<P>&, u32) {}
    template <class P>
    static PENSTOCK_ONDEVICE Victim take(const Pool<P>& pool, const Miss&) {
        return pool.search(pool.whole(), kScan, [](u32, u32, u32) { return false; });
    }
};

// Second chance: the hand passes once over a page that was touched since it last came by.
struct Clock {
    template <class P>
    static PENSTOCK_ONDEVICE u32 touched(const Pool<P>&, u32, u32 state) {
        return state | kReferenced;
    }
    template <class P>
    static PENSTOCK_ONDEVICE void loaded(const Pool<P>&, u32) {}
    template <class P>
    static PENSTOCK_ONDEVICE Victim take(const Pool<P>& pool, const Miss&) {
        return pool.search(pool.whole(), kScan,
                           [&](u32, u32 index, u32 state) { return second_chance(pool, index, state); });
    }
    template <class P>
    static PENSTOCK_ONDEVICE bool second_chance(const Pool<P>& pool, u32 index, u32 state) {
        if (!(state & kReferenced)) return false;
        P::template clear_bits<Scope::device>(&pool.frame(index).state, kReferenced);
        return true;
    }
};

// Pages of one range of keys, which is set in Shared, stay for good in the main part once they are there. Other pages
// share the probation part; the first of them also stay in frames of the main part that the range leaves over. On a
// cyclic sweep it hits exactly as often as the main part is long, which proofs and tests want. The range should be no
// longer than the main part.
struct PinnedRange {
    template <class P>
    static PENSTOCK_ONDEVICE void keep(const Pool<P>& pool, u64 first, u64 pages) {
        P::template store<Scope::device>(&pool.shared->keep_end, u64{0});
        P::template store<Scope::device>(&pool.shared->keep_first, first);
        P::template store<Scope::device>(&pool.shared->keep_end, first + pages);
    }
    template <class P>
    static PENSTOCK_ONDEVICE u32 touched(const Pool<P>&, u32, u32 state) {
        return state;
    }
    template <class P>
    static PENSTOCK_ONDEVICE void loaded(const Pool<P>&, u32) {}
    template <class P>
    static PENSTOCK_ONDEVICE Victim take(const Pool<P>& pool, const Miss& miss) {
        const auto stays = [&](u32, u32 index, u32) { return kept(pool, pool.directory.key(index)); };
        if (kept(pool, miss.key)) {
            const Victim victim = pool.search(pool.main(), kScan, stays);
            if (victim.kind == Victim::Kind::taken || victim.kind == Victim::Kind::dirty) return victim;
        }
        const Victim victim = pool.search(pool.trial(), kScan, [](u32, u32, u32) { return false; });
        return victim.kind == Victim::Kind::held ? pool.search(pool.main(), kScan, stays) : victim;
    }

  private:
    template <class P>
    static PENSTOCK_ONDEVICE bool kept(const Pool<P>& pool, u64 key) {
        return key >= P::template load<Scope::device>(&pool.shared->keep_first) &&
               key < P::template load<Scope::device>(&pool.shared->keep_end);
    }
};

}  // namespace penstock::ondevice
