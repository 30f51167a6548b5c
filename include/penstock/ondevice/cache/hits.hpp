// What a hit in the page cache needs and does. It is small enough for a thread to keep a copy in registers; what only a
// miss needs stays in memory, where all threads share it.
#pragma once

#include "penstock/ondevice/cache/replacement.hpp"

namespace penstock::ondevice {

template <class P, class Policy>
struct PageHits {
    Pool<P> pool;
    u8* bytes;
    u64 page_bytes;
    CacheCounts* counts;  // count_mask + 1 of them, which callers share by their multiprocessor
    u32 count_mask = 0;

    PENSTOCK_ONDEVICE u8* bytes_of(u32 frame) const { return bytes + u64{frame} * static_cast<u32>(page_bytes); }
    PENSTOCK_ONDEVICE CacheCounts& own_counts() const { return counts[P::processor() & count_mask]; }
    PENSTOCK_ONDEVICE void count_one(u64 Tally::* what) const { P::tick(&(own_counts().tally.*what), u64{1}); }

    // Gives references back. The last reference to a failed load frees the frame.
    PENSTOCK_ONDEVICE void drop(u32 frame, u32 references) const {
        const u32 before = P::template add<Scope::device, Order::release>(&pool.frame(frame).state, 0u - references);
        if ((before & (kFailed | kValid)) == kFailed && (before & kReferences) == references)
            give(pool.directory, frame, before - references);
    }

    // Adds references to the page and returns its frame, or returns kNoFrame. The references come first and the check
    // that the frame holds the page second: an addition cannot fail, however many callers want the page at once, where
    // an exchange can. A reference that is taken and dropped at once has one effect: the frame is not claimed in
    // between. Pairs with: the releasing addition or exchange that sets kValid (LoadsInFlight::finish,
    // PageLoads::filled); so the page's bytes are there for the caller.
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

    // Lanes that call together, and the page that the calling lane wants.
    struct Call {
        Lanes all;
        u64 key;
    };

    // Whether every caller has its page at once, with a reference for each. If not, `frame` is kNoFrame for the lanes
    // whose page is missing. `group` becomes the lanes that want the caller's page and went together for it. One lane
    // of each group whose page was here calls `found_one()`.
    template <class Found>
    PENSTOCK_ONDEVICE bool all_here(const Call& call, const Found& found_one, Lanes& group, u32& frame) const {
        return call.all == kWholeWarp ? all_here_of({kWholeWarp, call.key}, found_one, group, frame)
                                      : all_here_of(call, found_one, group, frame);
    }

    // Gives the reference back. `stored`: the caller wrote bytes to the page since acquire, all of them before this
    // call. Pairs with: the acquiring exchanges that claim the frame (FrameState::claim) or mark it as being written
    // (PageWrites::mark).
    PENSTOCK_ONDEVICE void release(u32 frame, bool stored = false) const {
        const Lanes all = P::active();
        const Lanes group = P::same(all, static_cast<u64>(frame) << 1 | (stored ? 1 : 0));
        P::sync(group);  // the leader's exchange also publishes what the other lanes stored
        if (P::lane() == lowest(group)) {
            if (stored)
                FrameState<P>::template change<Order::release>(pool.frame(frame), 0, kDirty, 0u - count(group));
            else  // a valid page is no failed load, so no frame is to be freed here
                P::template add<Scope::device, Order::release>(&pool.frame(frame).state, 0u - count(group));
        }
        P::sync(all);
    }

    // Gives back the references of callers that all_here gave their pages. Requires: the lanes are together again;
    // `all` and `group` are those of that call.
    PENSTOCK_ONDEVICE void release_of(Lanes all, Lanes group, u32 frame) const {
        if (all == kWholeWarp) return give_back(kWholeWarp, group, frame);
        give_back(all, group, frame);
    }

  private:
    // Inlined once for a whole warp and once for other masks. The mask of a whole warp is a constant; the compiler adds
    // a check to each use of another one.
    template <class Found>
    PENSTOCK_ONDEVICE bool all_here_of(const Call& call, const Found& found_one, Lanes& group, u32& frame) const {
        group = P::same(call.all, call.key);
        const u32 leader = lowest(group);
        u32 found = kNoFrame;
        if (P::lane() == leader) {
            found = hit(call.key, count(group));
            if (found != kNoFrame) found_one();
        }
        found = P::from(call.all, found, leader);  // by all lanes at once: masks that differ cost a check
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

    // Takes the directory by value, so that the caller's copy may stay in registers. Two callers may both find
    // themselves the last, one of them a hit that came too late. The exchange lets one of them free the frame.
    static PENSTOCK_ONDEVICE_SLOW void give(Directory<P> directory, u32 frame, u32 failed) {
        u32* const state = &directory.frames[frame].state;
        if (P::template swap_if<Scope::device>(state, failed, (failed & ~kFailed) | kBusy)) directory.give(frame);
    }
};

}  // namespace penstock::ondevice
