// The directory finds a page's frame, and keeps the frames that hold no page. It has hash buckets with chains through
// the frames, so its memory grows with the cache and not with the data, and stacks of free frames.
//
// A chain changes only under its bucket's lock. A holder of a lock takes a bounded number of steps and waits for
// neither I/O nor a second lock. So waiting for a lock has no deadline: no caller could act upon that failure.
#pragma once

#include "penstock/ondevice/cache/frame.hpp"

namespace penstock::ondevice {

struct Bucket {
    u64 head;  // low half: the first frame; high half: the tag of its page's key, which saves a look at the frame
    u32 lock;
    u32 reserved;
};
static_assert(sizeof(Bucket) == 16, "the memory per directory entry is a promise");

template <class P>
struct Directory {
    Frame* frames;
    Bucket* buckets;
    u64* free;    // tops of the stacks: a turn that makes every top different, and the frame
    u64* unused;  // [0]: the first frame that was never used. [1], if there are many stacks: how many frames they hold
    u32 bucket_mask;
    u32 frame_count;
    u32 free_mask;  // one less than the number of stacks, a power of two; a frame always returns to the same stack

    static PENSTOCK_ONDEVICE u64 mixed(u64 key) {
        key *= 0x9e3779b97f4a7c15ull;
        return key ^ key >> 32;
    }
    static PENSTOCK_ONDEVICE u64 head_of(u32 frame, u64 key) {
        return frame == kNoFrame ? u64{kNoFrame} : mixed(key) >> 32 << 32 | frame;
    }
    PENSTOCK_ONDEVICE Bucket& bucket(u64 key) const { return buckets[static_cast<u32>(mixed(key)) & bucket_mask]; }

    PENSTOCK_ONDEVICE void lock(Bucket& at) const {
        u32 open = 0;
        while (!P::template swap_if<Scope::device, Order::acquire>(&at.lock, open, 1u)) {
            open = 0;
            P::pause(32);
        }
    }
    PENSTOCK_ONDEVICE void unlock(Bucket& at) const { P::template store<Scope::device>(&at.lock, 0u); }

    PENSTOCK_ONDEVICE u64 key(u32 frame) const { return P::template load<Scope::device>(&frames[frame].key); }
    // Requires: the caller has the lock of the frame's chain, or has acquired the top of its stack.
    PENSTOCK_ONDEVICE u32 next(u32 frame) const {
        return P::template load<Scope::device, Order::relaxed>(&frames[frame].next);
    }

    // The first frame of a bucket's chain; for tests.
    PENSTOCK_ONDEVICE u32 first(u32 at) const { return static_cast<u32>(buckets[at].head); }

    // head, find and link need the bucket's lock, which orders what they load and store. `glance` reads the same words
    // without it, and its caller must see a valid state before it uses the frame.
    PENSTOCK_ONDEVICE u64 head(const Bucket& at) const {
        return P::template load<Scope::device, Order::relaxed>(&at.head);
    }
    PENSTOCK_ONDEVICE u32 find(u64 head, u64 wanted) const {
        u32 frame = static_cast<u32>(head);
        while (frame != kNoFrame && P::template load<Scope::device, Order::relaxed>(&frames[frame].key) != wanted)
            frame = P::template load<Scope::device, Order::relaxed>(&frames[frame].next);
        return frame;
    }

    PENSTOCK_ONDEVICE void link(Bucket& at, u64 head, u64 key, u32 frame) const {
        P::template store<Scope::device, Order::relaxed>(&frames[frame].next, static_cast<u32>(head));
        P::template store<Scope::device, Order::relaxed>(&at.head, head_of(frame, key));
    }

    // Finds a page's frame without the lock. Frames may go to other chains or to the stack meanwhile. So it may miss a
    // page that is there, and may find a frame that is another page's by now: the caller takes a reference and then
    // looks at the key again. A walk that strayed into another chain ends after `most` hops.
    PENSTOCK_ONDEVICE u32 glance(u64 wanted) const {
        constexpr u32 most = 32;
        const u64 hash = mixed(wanted);
        const Bucket& at = buckets[static_cast<u32>(hash) & bucket_mask];
        const u64 head = P::template load<Scope::device, Order::relaxed>(&at.head);
        u32 frame = static_cast<u32>(head);
        if (frame == kNoFrame || static_cast<u32>(head >> 32) == static_cast<u32>(hash >> 32)) return frame;
        PENSTOCK_ROLLED
        for (u32 hops = 0; hops < most; ++hops) {
            frame = P::template load<Scope::device, Order::relaxed>(&frames[frame].next);
            if (frame == kNoFrame) break;
            if (P::template load<Scope::device, Order::relaxed>(&frames[frame].key) == wanted) return frame;
        }
        return kNoFrame;
    }
    PENSTOCK_ONDEVICE u32 find_locked(u64 wanted) const {
        Bucket& at = bucket(wanted);
        lock(at);
        const u32 frame = find(head(at), wanted);
        unlock(at);
        return frame;
    }

    // Takes the frame out of its chain, under the bucket's lock. Requires: the frame is busy and the caller's.
    PENSTOCK_ONDEVICE void unlink(u32 frame) const {
        Bucket& at = bucket(key(frame));
        lock(at);
        const u32 after = next(frame);
        u32 here = static_cast<u32>(head(at));
        if (here == frame) {
            const u64 then = head_of(after, after == kNoFrame ? kNoKey : key(after));
            P::template store<Scope::device, Order::relaxed>(&at.head, then);
        } else {
            while (here != kNoFrame && next(here) != frame) here = next(here);
            if (here != kNoFrame) P::template store<Scope::device, Order::relaxed>(&frames[here].next, after);
        }
        unlock(at);
    }

    // Frees the frame: it stays busy, keeps the bit of its part, and may have references that late hits give back.
    // Requires: the frame is busy, the caller's, and in no chain.
    PENSTOCK_ONDEVICE void give(u32 frame) const {
        P::template store<Scope::device, Order::relaxed>(&frames[frame].key, kNoKey);
        P::template clear_bits<Scope::device, Order::relaxed>(&frames[frame].state, kOfPage);
        u64* const stack = free + (frame & free_mask);
        u64 top = P::template load<Scope::device>(stack);
        // Pairs with: the acquires of take and pop.
        do {
            P::template store<Scope::device, Order::relaxed>(&frames[frame].next, static_cast<u32>(top));
        } while (!P::template swap_if<Scope::device, Order::release>(stack, top, after(top, frame)));
        if (free_mask != 0) P::tick(unused + 1, u64{1});
    }

    // Takes a free frame, or returns kNoFrame. Frames that were never used come first: if all warps begin at once,
    // counting on is cheaper than popping. The three loads are under way at once.
    PENSTOCK_ONDEVICE u32 take() const {
        const u32 first = P::caller();
        const u64 used = P::template load<Scope::device, Order::relaxed>(unused);
        const u64 held = free_mask == 0 ? 0 : P::template load<Scope::device, Order::relaxed>(unused + 1);
        const u64 top = P::template load<Scope::device>(free + (first & free_mask));
        if (used < frame_count) {
            const u64 frame = P::template add<Scope::device, Order::relaxed>(unused, u64{1});
            if (frame < frame_count) return static_cast<u32>(frame);
        }
        if (free_mask == 0) return pop(free, top);
        if (!some(held)) return kNoFrame;
        u32 frame = pop(free + (first & free_mask), top);
        for (u32 turn = 1; frame == kNoFrame && turn <= free_mask; ++turn) {
            if (!some(P::template load<Scope::device, Order::relaxed>(unused + 1))) return kNoFrame;
            u64* const stack = free + ((first + turn) & free_mask);
            frame = pop(stack, P::template load<Scope::device>(stack));
        }
        if (frame != kNoFrame) P::tick(unused + 1, ~u64{0});
        return frame;
    }

  private:
    // Whether there are free frames. The count is a little late: a caller that misses a frame evicts a page, and the
    // next caller finds the frame.
    static PENSTOCK_ONDEVICE bool some(u64 free_frames) { return static_cast<long long>(free_frames) > 0; }

    // Pops a frame. Requires: the caller has acquired `top`, so that it may read the frame's `next`.
    PENSTOCK_ONDEVICE u32 pop(u64* stack, u64 top) const {
        for (;;) {
            const u32 frame = static_cast<u32>(top);
            if (frame == kNoFrame) return kNoFrame;
            if (P::template swap_if<Scope::device, Order::acquire>(stack, top, after(top, next(frame)))) return frame;
        }
    }

    static PENSTOCK_ONDEVICE u64 after(u64 top, u32 frame) { return ((top >> 32) + 1) << 32 | frame; }
};

}  // namespace penstock::ondevice
