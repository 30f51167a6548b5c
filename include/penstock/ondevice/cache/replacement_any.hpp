// The policy that a cache was made with, for kernels that serve caches of any policy: Pool::chosen says which.
#pragma once

#include "penstock/ondevice/cache/replacement_sweep.hpp"

namespace penstock::ondevice {

struct AnyReplacement {
    template <class P>
    static PENSTOCK_ONDEVICE u32 touched(const Pool<P>& pool, u32 index, u32 state) {
        if (pool.chosen == Replacement::sweep_resistant) return SweepResistant::touched(pool, index, state);
        return pool.chosen == Replacement::clock ? Clock::touched(pool, index, state) : state;
    }

    template <class P>
    static PENSTOCK_ONDEVICE void loaded(const Pool<P>& pool, u32 index) {
        if (pool.chosen == Replacement::sweep_resistant) SweepResistant::loaded(pool, index);
    }

    // Takes the pool by value, so that the caller need not have it in memory.
    template <class P>
    static PENSTOCK_ONDEVICE_SLOW Victim take(Pool<P> pool, Miss miss) {
        switch (pool.chosen) {
            case Replacement::sweep_resistant: return SweepResistant::take(pool, miss);
            case Replacement::clock: return Clock::take(pool, miss);
            case Replacement::fifo: return Fifo::take(pool, miss);
            case Replacement::pinned_range: return PinnedRange::take(pool, miss);
        }
        return SweepResistant::take(pool, miss);
    }
};

}  // namespace penstock::ondevice
