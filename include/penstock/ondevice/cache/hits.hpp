// What a hit in the page cache needs, and does: the quick half of the page cache, small enough to be a thread's own, in
// registers. What shares memory with other threads' calls lies in the slow half.
#pragma once

#include "penstock/ondevice/cache/replacement.hpp"

namespace penstock::ondevice {

template <class P, class Policy>
struct Hits {
    Pool<P> pool;
    u8* bytes;
    u64 page_bytes;
    CacheCounts* counts;  // count_mask + 1 of them, which callers share by their multiprocessor
    u32 count_mask = 0;

    PENSTOCK_ONDEVICE u8* bytes_of(u32 frame) const { return bytes + u64{frame} * static_cast<u32>(page_bytes); }
    PENSTOCK_ONDEVICE CacheCounts& own_counts() const { return counts[P::processor() & count_mask]; }
    PENSTOCK_ONDEVICE void tell(u64 Tally::* what) const { P::tick(&(own_counts().tally.*what), u64{1}); }

    // Gives references back. The last one of a failed load frees the frame.
    PENSTOCK_ONDEVICE void drop(u32 frame, u32 references) const {
        const u32 before = P::template add<Scope::device, Order::release>(&pool.frame(frame).state, 0u - references);
        if ((before & (kFailed | kValid)) == kFailed && (before & kReferences) == references)
            give(pool.directory, frame, before - references);
    }

    // The frame of a page that is here, with references, or none. References are added before it is known whether the
    // frame holds the page: an addition cannot fail, however many want the page at once, where an exchange can. Nothing
    // becomes of references that are given back at once, but that a frame is not claimed meanwhile.
    PENSTOCK_ONDEVICE u32 hit(u64 key, u32 references) const {
        const u32 frame = pool.directory.glance(key);
        if (frame == kNoFrame) return kNoFrame;
        u32* const state = &pool.frame(frame).state;
        const u32 before = P::template add<Scope::device, Order::acquire>(state, references);
        const bool same = P::template load<Scope::device, Order::relaxed>(&pool.frame(frame).key) == key;
        if ((before & (kValid | kBusy)) != kValid || !same) {
            drop(frame, references);
            return kNoFrame;
        }
        if (Policy::touched(pool, frame, before) != before)
            P::template set_bits<Scope::device, Order::relaxed>(state, kReferenced);
        return frame;
    }

    // Lanes that call together, and the page that the calling one wants.
    struct Call {
        Lanes all;
        u64 key;
    };

    // Whether all callers have their pages at once, each with a reference, and if not, which of them has: the others'
    // frame is kNoFrame. `group` are the lanes that want the caller's page and went together for it; `found_one()` is
    // called by one lane of those whose page was here.
    template <class Found>
    PENSTOCK_ONDEVICE bool all_here(const Call& call, const Found& found_one, Lanes& group, u32& frame) const {
        return call.all == kWholeWarp ? all_here_of({kWholeWarp, call.key}, found_one, group, frame)
                                      : all_here_of(call, found_one, group, frame);
    }

    // Gives the reference back. `stored`: bytes were written to the page since acquire, all of them before this call.
    PENSTOCK_ONDEVICE void release(u32 frame, bool stored = false) const {
        const Lanes all = P::active();
        const Lanes group = P::same(all, static_cast<u64>(frame) << 1 | (stored ? 1 : 0));
        P::sync(group);  // the leader's exchange also publishes what the other lanes stored
        if (P::lane() == lowest(group)) {
            if (stored)
                FrameState<P>::template change<Order::release>(pool.frame(frame), 0, kDirty, 0u - count(group));
            else  // a page that was here cannot have failed: nobody waits for what this finds
                P::template add<Scope::device, Order::release>(&pool.frame(frame).state, 0u - count(group));
        }
        P::sync(all);
    }

    // The same of callers that all_here said have their pages, together again: its `call.all` and `group`.
    PENSTOCK_ONDEVICE void release_of(Lanes all, Lanes group, u32 frame) const {
        if (all == kWholeWarp) return give_back(kWholeWarp, group, frame);
        give_back(all, group, frame);
    }

  private:
    // Inlined for each caller, so that the mask of a whole warp is a constant: others are looked at with each use.
    template <class Found>
    PENSTOCK_ONDEVICE bool all_here_of(const Call& call, const Found& found_one, Lanes& group, u32& frame) const {
        group = P::same(call.all, call.key);
        const u32 leader = lowest(group);
        u32 found = kNoFrame;
        if (P::lane() == leader) {
            found = hit(call.key, count(group));
            if (found != kNoFrame) found_one();
        }
        found = P::from(call.all, found, leader);  // all lanes at once: masks that differ are checked, which costs more
        P::sync(call.all);  // what the leader may see, all may
        frame = found;
        return P::ballot(call.all, found == kNoFrame) == 0;
    }

    PENSTOCK_ONDEVICE void give_back(Lanes all, Lanes group, u32 frame) const {
        P::sync(all);
        if (P::lane() == lowest(group))
            P::template add<Scope::device, Order::release>(&pool.frame(frame).state, 0u - count(group));
        P::sync(all);
    }

    // By value, so that the caller's own may stay in registers. A hit that comes too late may also find itself the
    // last: only one of them leaves the failed state behind.
    static PENSTOCK_ONDEVICE_SLOW void give(Directory<P> directory, u32 frame, u32 failed) {
        u32* const state = &directory.frames[frame].state;
        if (P::template swap_if<Scope::device>(state, failed, (failed & ~kFailed) | kBusy)) directory.give(frame);
    }
};

}  // namespace penstock::ondevice
