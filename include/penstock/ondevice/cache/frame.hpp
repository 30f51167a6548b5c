// A frame holds one page of the cache. Its state is one word. So taking a reference, making a page dirty and claiming a
// frame for another page are each one exchange, and none of them can come between the parts of another.
//
// What callers may do: while a frame is valid and not busy, any caller may add references. While it is busy, one owner
// alone may change key, chain and page; others may only add references to a page that is being loaded, under the lock
// of its bucket. A frame with references is never claimed. The caller that sets kWriting clears kDirty in the same
// exchange, before the store reads the page's bytes.
#pragma once

#include "penstock/ondevice/platform.hpp"
#include "penstock/ondevice/status.hpp"

namespace penstock::ondevice {

inline constexpr u32 kReferences = (1u << 24) - 1;  // the low bits count
inline constexpr u32 kInFlight = 1u << 24;          // with busy: a load that any caller may finish
inline constexpr u32 kProbation = 1u << 25;         // in the probation part: see replacement
inline constexpr u32 kReferenced = 1u << 26;        // touched again: the policy's bit
// Not valid: the load failed with the status in `note`, and the caller that drops the last reference frees the frame.
// Valid: the last write-back failed.
inline constexpr u32 kFailed = 1u << 27;
inline constexpr u32 kWriting = 1u << 28;           // its bytes are being written back
// The page has bytes that no write-back has begun to carry. With busy: a caller overwrites all of the page.
inline constexpr u32 kDirty = 1u << 29;
inline constexpr u32 kBusy = 1u << 30;   // being loaded (not valid), or being claimed (valid), or free
inline constexpr u32 kValid = 1u << 31;  // the page is here
// The bits that go with the page when a claimed frame loses it. References stay: they may be those of a hit that found
// the frame too late and is about to give them back.
inline constexpr u32 kOfPage = ~(kProbation | kReferences | kBusy);

inline constexpr u32 kNoFrame = ~0u;
inline constexpr u64 kNoKey = ~0ull;

struct Frame {
    u64 key;
    u32 state;
    u32 next;    // the next frame of the bucket's chain, or of the stack of free frames
    u32 policy;  // the policy's word: when the page came
    u32 note;    // in flight: ticket; failed: status; valid: pins
};
static_assert(sizeof(Frame) == 24, "the memory per page is a promise");

// key = array << 40 | page
inline constexpr u32 kPageBits = 40;
PENSTOCK_ONDEVICE u64 key_of(u32 array, u64 page) { return static_cast<u64>(array) << kPageBits | page; }
PENSTOCK_ONDEVICE u32 array_of(u64 key) { return static_cast<u32>(key >> kPageBits); }

// What callers have counted.
struct Tally {
    u64 hits;    // calls that found the page; lanes that called together for it count as one
    u64 misses;  // pages that callers began to load, prefetches included
    u64 joined;  // pages acquired while another caller was loading them
    u64 evictions;
    u64 write_backs;
    u64 failures;  // loads and write-backs that failed
};

// Buckets of how long callers waited for pages: a quarter of an octave each, from 256 cycles on.
inline constexpr u32 kWaitBuckets = 100;
PENSTOCK_ONDEVICE u32 wait_bucket(u64 cycles) {
    u32 octave = 0;
    while (octave < kWaitBuckets / 4 - 1 && cycles >= (u64{512} << octave)) ++octave;
    const u64 quarter = (cycles >> (octave + 6)) & 3;
    return cycles < 256 ? 0 : octave * 4 + static_cast<u32>(quarter);
}

// The counts of the callers on some multiprocessors. Callers only add to them.
struct alignas(64) CacheCounts {
    Tally tally;
    u32 waits[kWaitBuckets];
};

template <class P>
PENSTOCK_ONDEVICE void merge(Tally& into, const Tally& from) {
    const auto merged = [](u64* sum, u64 count) {
        if (count != 0) P::tick(sum, count);
    };
    merged(&into.hits, from.hits);
    merged(&into.misses, from.misses);
    merged(&into.joined, from.joined);
    merged(&into.evictions, from.evictions);
    merged(&into.write_backs, from.write_backs);
    merged(&into.failures, from.failures);
}

// What callers do to the state word.
template <class P>
struct FrameState {
    static PENSTOCK_ONDEVICE u32 load(const Frame& frame) { return P::template load<Scope::device>(&frame.state); }

    // Clears `off`, sets `on` and adds `references` (which may be negative, in two's complement), all in one exchange.
    // Returns the state before.
    template <Order O = Order::both>
    static PENSTOCK_ONDEVICE u32 change(Frame& frame, u32 off, u32 on, u32 references) {
        u32 before = P::template load<Scope::device, Order::relaxed>(&frame.state);
        while (!P::template swap_if<Scope::device, O>(&frame.state, before, ((before & ~off) | on) + references)) {
        }
        return before;
    }

    enum class Claim : u8 { taken, dirty, held, in_flight, busy };

    // Makes the frame of a clean page without references the caller's alone, or returns what stands in the way.
    static PENSTOCK_ONDEVICE Claim claim(Frame& frame) {
        u32 state = load(frame);
        return claim(frame, state);
    }
    // The caller passes the state that it saw last; `state` becomes what it was when the page was taken. Pairs with:
    // the releasing drop of the last reference (PageHits::release), so that its loads and stores are over.
    static PENSTOCK_ONDEVICE Claim claim(Frame& frame, u32& state) {
        for (;;) {
            if (state & kBusy) return state & kInFlight ? Claim::in_flight : Claim::busy;
            if ((state & kReferences) != 0 || !(state & kValid)) return state & kWriting ? Claim::busy : Claim::held;
            if (state & kDirty) return Claim::dirty;
            if (P::template swap_if<Scope::device, Order::acquire>(&frame.state, state, state | kBusy))
                return Claim::taken;
        }
    }
};

}  // namespace penstock::ondevice
