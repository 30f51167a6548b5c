// A platform like Native, for tests on a GPU, in which words that lanes exchange carry the place of the exchange and
// its mask. Lanes that exchange at two places of the program, or under two masks, get each other's words; the witness
// keeps the first such exchange.
//
// It does not look at barriers: lanes may wait for each other at two places as long as they exchange nothing. On the
// host a warp is one lane and exchanges nothing.
#pragma once

#include "penstock/ondevice/platform.hpp"

namespace penstock::ondevice {

struct Strayed {
    u32 times;
    u32 line, others_line;  // lines of the header that called
    Lanes mask, others_mask;
    u32 lane, other;
};

#if defined(__CUDACC__)
namespace {
__device__ Strayed strayed;
}
#endif

struct Witnessed : Native {
    template <class T>
    static PENSTOCK_ONDEVICE T from(Lanes lanes, T value, u32 source, u32 line = __builtin_LINE()) {
        meet(lanes, source, line);
        return Native::from(lanes, value, source);
    }
    static PENSTOCK_ONDEVICE Lanes same(Lanes lanes, u64 value, u32 line = __builtin_LINE()) {
        meet(lanes, lowest(lanes), line);
        return Native::same(lanes, value);
    }
    static PENSTOCK_ONDEVICE Lanes ballot(Lanes lanes, bool condition, u32 line = __builtin_LINE()) {
        meet(lanes, lowest(lanes), line);
        return Native::ballot(lanes, condition);
    }

  private:
    static PENSTOCK_ONDEVICE void meet(Lanes lanes, u32 source, u32 line) {
#if defined(__CUDA_ARCH__)
        const u32 there = Native::from(lanes, line, source);
        const Lanes mask = Native::from(lanes, lanes, source);
        if ((there == line && mask == lanes) || atomicAdd(&strayed.times, 1u) != 0) return;
        strayed.line = line, strayed.others_line = there;
        strayed.mask = lanes, strayed.others_mask = mask;
        strayed.lane = Native::lane(), strayed.other = source;
#else
        static_cast<void>(lanes), static_cast<void>(source), static_cast<void>(line);
#endif
    }
};

}  // namespace penstock::ondevice
