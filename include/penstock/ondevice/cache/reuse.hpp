// Whether rows would find their pages in the cache again. Some pages are watched, by the hash of their keys, and a
// table of tags stands for the share that the cache has for them: a use of a watched page is one that the cache would
// have found, or one that it would have loaded, whether or not the cache has loaded it.
//
// A page costs as much of the link as page_bytes / row_bytes rows. So pages pay where at most row_bytes / page_bytes of
// their uses are loads. The counts are halved now and then, so that what was long ago weighs little. They are
// estimates: callers that count at once may lose a tag to each other, and nothing but speed depends on it.
#pragma once

#include "penstock/ondevice/cache/directory.hpp"

namespace penstock::ondevice {

template <class P>
struct Reuse {
    static constexpr u32 ways = 8;          // tags of a set, which is one piece of 32 bytes
    static constexpr u32 few = 64;          // uses; fewer say nothing
    static constexpr u32 window = 1u << 14;  // uses at which the counts are halved

    u32* counts;      // uses, and those of them that would have been loads
    u32* tags;        // `sets` sets
    u32 sets;         // 0: nothing is watched
    u32 sample_mask;  // a page is watched where these bits of its hash are zero

    // One in 16 frames of the cache has a tag; all have one where there are few.
    static PENSTOCK_ONDEVICE u32 sample_mask_of(u32 frames) { return frames < 1024 ? 0 : 15; }
    static PENSTOCK_ONDEVICE u32 sets_of(u32 frames) {
        const u32 sets = frames / (sample_mask_of(frames) + 1) / ways;
        return sets == 0 ? 1 : sets;
    }
    static PENSTOCK_ONDEVICE u64 bytes_of(u32 frames) { return (2 + u64{sets_of(frames)} * ways) * sizeof(u32); }

    // Counts uses of the page at one time. One caller of those that use it together calls.
    PENSTOCK_ONDEVICE void use(u64 key, u32 uses = 1) const {
        const u64 hash = Directory<P>::mixed(key);
        if (sets == 0 || (hash & sample_mask) != 0) return;
        u32* const set = tags + (u64{static_cast<u32>(hash) >> 4} * sets >> 28) * ways;
        const u32 tag = static_cast<u32>(hash >> 32) | 1;  // 0: none
        const u32 turn = P::template add<Scope::device, Order::relaxed>(counts, uses);
        bool found = false;
        for (u32 way = 0; way < ways; ++way)
            found |= P::template load<Scope::device, Order::relaxed>(set + way) == tag;
        if (!found) {
            P::template store<Scope::device, Order::relaxed>(set + turn % ways, tag);
            P::tick(counts + 1, 1u);
        }
        if (turn < window && turn + uses >= window) halve();
    }

    // Whether whole pages are worth their bytes for rows of so many.
    PENSTOCK_ONDEVICE bool pays(u64 row_bytes, u64 page_bytes) const {
        const u64 uses = P::template load<Scope::device, Order::relaxed>(counts);
        const u64 loads = P::template load<Scope::device, Order::relaxed>(counts + 1);
        return uses < few || loads * page_bytes <= uses * row_bytes;
    }

  private:
    // One caller is the last of a window.
    PENSTOCK_ONDEVICE void halve() const {
        const u32 loads = P::template load<Scope::device, Order::relaxed>(counts + 1);
        P::template add<Scope::device, Order::relaxed>(counts, 0u - window / 2);
        P::template add<Scope::device, Order::relaxed>(counts + 1, 0u - loads / 2);
    }
};

}  // namespace penstock::ondevice
