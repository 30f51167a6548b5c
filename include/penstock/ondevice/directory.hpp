// The directory finds a page's frame: hash buckets with chains through the frames, so its memory follows the cache and
// never the data; and the stack of frames that hold no page.
//
// Chains change only under their bucket's lock. A holder takes a bounded number of steps and waits for nothing, neither
// I/O nor a second lock, so waiting for a lock has no deadline: it would be a failure that nobody could act upon.
#pragma once

#include "penstock/ondevice/frame.hpp"

namespace penstock::ondevice {

struct Bucket {
    u32 head;
    u32 lock;
};
static_assert(sizeof(Bucket) == 8, "the memory per directory entry is a promise");

template <class P>
struct Directory {
    Frame* frames;
    Bucket* buckets;
    u64* free;    // top of the stack: a turn that makes every top different, and the frame
    u64* unused;  // frames from this one on were never used
    u32 bucket_mask;
    u32 frame_count;

    PENSTOCK_ONDEVICE Bucket& bucket(u64 key) const {
        u64 mixed = key * 0x9e3779b97f4a7c15ull;
        mixed ^= mixed >> 32;
        return buckets[static_cast<u32>(mixed) & bucket_mask];
    }

    PENSTOCK_ONDEVICE void lock(Bucket& at) const {
        u32 open = 0;
        while (!P::template swap_if<Scope::device, Order::acquire>(&at.lock, open, 1u)) {
            open = 0;
            P::pause(32);
        }
    }
    PENSTOCK_ONDEVICE void unlock(Bucket& at) const { P::template store<Scope::device>(&at.lock, 0u); }

    PENSTOCK_ONDEVICE u64 key(u32 frame) const { return P::template load<Scope::device>(&frames[frame].key); }
    PENSTOCK_ONDEVICE u32 next(u32 frame) const { return P::template load<Scope::device>(&frames[frame].next); }

    // Under the lock it is exact. Without, frames may go to other chains or to the stack meanwhile: it may miss a page
    // that is there, and what it finds has to be looked at again; `most` ends a walk that has lost its way.
    // Relaxed, for the lock orders those who hold it, and others look again after they have a reference.
    PENSTOCK_ONDEVICE u32 find(const Bucket& at, u64 wanted, u32 most) const {
        u32 frame = P::template load<Scope::device, Order::relaxed>(&at.head);
        for (u32 hops = 0; frame != kNoFrame && hops < most; ++hops) {
            if (P::template load<Scope::device, Order::relaxed>(&frames[frame].key) == wanted) return frame;
            frame = P::template load<Scope::device, Order::relaxed>(&frames[frame].next);
        }
        return kNoFrame;
    }

    PENSTOCK_ONDEVICE u32 glance(u64 wanted) const { return find(bucket(wanted), wanted, 32); }
    PENSTOCK_ONDEVICE u32 find_locked(u64 wanted) const {
        Bucket& at = bucket(wanted);
        lock(at);
        const u32 frame = find(at, wanted, frame_count);
        unlock(at);
        return frame;
    }

    // Under the lock.
    PENSTOCK_ONDEVICE void link(Bucket& at, u32 frame) const {
        P::template store<Scope::device>(&frames[frame].next, P::template load<Scope::device>(&at.head));
        P::template store<Scope::device>(&at.head, frame);
    }

    // Takes the caller's own busy frame out of its chain; takes the lock itself.
    PENSTOCK_ONDEVICE void unlink(u32 frame) const {
        Bucket& at = bucket(key(frame));
        lock(at);
        u32* from = &at.head;
        for (u32 here = P::template load<Scope::device>(from); here != frame && here != kNoFrame;
             here = P::template load<Scope::device>(from))
            from = &frames[here].next;
        P::template store<Scope::device>(from, next(frame));
        unlock(at);
    }

    // The caller's own frame, linked nowhere: busy and nothing else, but for references that are about to be given back.
    PENSTOCK_ONDEVICE void give(u32 frame) const {
        P::template store<Scope::device>(&frames[frame].key, kNoKey);
        FrameState<P>::change(frames[frame], ~(kProbation | kReferences), kBusy, 0);
        u64 top = P::template load<Scope::device>(free);
        do {
            P::template store<Scope::device>(&frames[frame].next, static_cast<u32>(top));
        } while (!P::template swap_if<Scope::device>(free, top, after(top, frame)));
    }

    // Frames that were never used come first: to count on is cheaper than to pop where all begin at once.
    PENSTOCK_ONDEVICE u32 take() const {
        if (P::template load<Scope::device, Order::relaxed>(unused) < frame_count) {
            const u64 frame = P::template add<Scope::device, Order::relaxed>(unused, u64{1});
            if (frame < frame_count) return static_cast<u32>(frame);
        }
        u64 top = P::template load<Scope::device>(free);
        for (;;) {
            const u32 frame = static_cast<u32>(top);
            if (frame == kNoFrame) return kNoFrame;
            if (P::template swap_if<Scope::device>(free, top, after(top, next(frame)))) return frame;
        }
    }

  private:
    static PENSTOCK_ONDEVICE u64 after(u64 top, u32 frame) { return ((top >> 32) + 1) << 32 | frame; }
};

}  // namespace penstock::ondevice
