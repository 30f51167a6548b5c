// How the memory of a page cache is laid out in one allocation, and how it starts. It depends on the cache's size
// alone: besides its bytes a page costs 28 B, a directory entry 16 B, and the cache 832 B.
#pragma once

#include "penstock/ondevice/page_cache.hpp"

namespace penstock::ondevice {

struct CacheShape {
    u32 frames;
    u32 buckets;    // a power of two; about the number of frames
    u32 probation;  // frames of the probation part: more than loads in flight at once
    u32 page_bytes;

    PENSTOCK_ONDEVICE bool usable() const {
        return frames != 0 && frames < kNoFrame && buckets != 0 && (buckets & (buckets - 1)) == 0 &&
               probation <= frames && probation != 0 && page_bytes >= 512 && page_bytes <= (2u << 20) &&
               (page_bytes & (page_bytes - 1)) == 0;
    }
    // Places of the directory and states. The pages lie apart, aligned to their size as devices want it.
    PENSTOCK_ONDEVICE u64 shared_at() const { return 0; }
    PENSTOCK_ONDEVICE u64 frames_at() const { return sizeof(Shared); }
    PENSTOCK_ONDEVICE u64 buckets_at() const { return frames_at() + u64{frames} * sizeof(Frame); }
    PENSTOCK_ONDEVICE u64 slots_at() const { return buckets_at() + u64{buckets} * sizeof(Bucket); }
    PENSTOCK_ONDEVICE u64 state_bytes() const { return slots_at() + u64{frames} * sizeof(u32); }
    PENSTOCK_ONDEVICE u64 data_bytes() const { return u64{frames} * page_bytes; }
};
static_assert(sizeof(Frame) + sizeof(u32) <= 64, "GPU memory a cached page");
static_assert(sizeof(Bucket) <= 16, "GPU memory a directory entry");

// The shape of a cache of so many frames. A sixteenth of them is on probation, which costs a sweep a sixteenth of its
// hits.
PENSTOCK_ONDEVICE CacheShape shape_of(u32 frames, u32 page_bytes) {
    u32 buckets = 1;
    while (buckets < frames && buckets < (1u << 31)) buckets *= 2;
    return {frames, buckets, frames < 32 ? 1 : frames / 16, page_bytes};
}

// PageCacheRef::together: half of the frames that are never pinned. Callers that hold one page at a time share the
// rest.
PENSTOCK_ONDEVICE u32 together_of(u32 frames, u32 quota) { return (frames - quota) / 2; }

template <class P>
PENSTOCK_ONDEVICE Pool<P> pool_of(const CacheShape& shape, void* states) {
    u8* const base = static_cast<u8*>(states);
    Shared* const shared = reinterpret_cast<Shared*>(base + shape.shared_at());
    return {{reinterpret_cast<Frame*>(base + shape.frames_at()), reinterpret_cast<Bucket*>(base + shape.buckets_at()),
             shared->free, shared->unused, shape.buckets - 1, shape.frames, free_stacks(shape.frames) - 1},
            reinterpret_cast<u32*>(base + shape.slots_at()),
            shared,
            shape.probation};
}

// Empties the cache; `thread` of `threads` does its share. Requires: no caller uses the cache before all shares are
// done.
template <class P>
PENSTOCK_ONDEVICE void format(const Pool<P>& pool, u64 thread, u64 threads) {
    const u32 frames = pool.frames();
    for (u64 at = thread; at < frames; at += threads) {
        const u32 index = static_cast<u32>(at);
        pool.frame(index) = {kNoKey, kBusy | (pool.on_trial(index) ? kProbation : 0), kNoFrame, 0, 0};
        pool.slots[index] = index;
    }
    for (u64 at = thread; at <= pool.directory.bucket_mask; at += threads)
        pool.directory.buckets[at] = {kNoFrame, 0, 0};
    for (u64 at = thread; at < kAdvisedArrays; at += threads) pool.shared->advice[at] = 0;
    if (thread != 0) return;
    for (u64& top : pool.shared->free) top = kNoFrame;
    pool.shared->unused[0] = pool.shared->unused[1] = 0;
    pool.shared->main_hand = pool.shared->probation_hand = pool.shared->draws = pool.shared->pins = 0;
    pool.shared->together = 0;
    pool.shared->keep_first = pool.shared->keep_end = 0;
}

}  // namespace penstock::ondevice
