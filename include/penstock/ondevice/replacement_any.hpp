// The policy that a cache was made with, where one kernel serves caches of any: Pool::chosen says which.
#pragma once

#include "penstock/ondevice/replacement_sweep.hpp"

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

    template <class P>
    static PENSTOCK_ONDEVICE_SLOW Victim take(const Pool<P>& pool, u64 key) {
        switch (pool.chosen) {
            case Replacement::sweep_resistant: return SweepResistant::take(pool, key);
            case Replacement::clock: return Clock::take(pool, key);
            case Replacement::fifo: return Fifo::take(pool, key);
            case Replacement::pinned_range: return PinnedRange::take(pool, key);
        }
        return SweepResistant::take(pool, key);
    }
};

}  // namespace penstock::ondevice
