// Element loads through a page cache, beside the same loads from plain memory: what a hit costs.
//
// Every thread adds up elements of a stored array. `tile` is how many elements one call brings: 1 is array[i],
// neighbours in a warp asking for neighbours; more is one visit of the whole warp.
#pragma once

#include "penstock/ondevice/stored_array.hpp"

namespace penstock::load {

using ondevice::Status;
using ondevice::u32;
using ondevice::u64;

struct LoadsWork {
    const ondevice::StoredRef* ref;
    const float* plain;  // the same elements in memory; nullptr: through the cache
    u64 items;           // a multiple of the tile and of 32
    u32 rounds;
    u32 tile;
    float* sums;  // one for each thread, so that nothing is left out
    int* failed;  // takes a status
};

template <class Use>
PENSTOCK_ONDEVICE void each_tile(const LoadsWork& work, u64 worker, u64 workers, const Use& use) {
    for (u32 round = 0; round < work.rounds; ++round)
        for (u64 at = worker * work.tile; at < work.items; at += workers * work.tile) use(at);
}

// One thread's share; `thread` of `threads`, `lane` of `lanes` in its warp.
PENSTOCK_ONDEVICE void loads_share(const LoadsWork& work, u64 thread, u64 threads, u32 lanes) {
    const u32 lane = ondevice::Native::lane();
    float sum = 0;
    if (work.plain != nullptr) {
        if (work.tile == 1) each_tile(work, thread, threads, [&](u64 at) { sum += work.plain[at]; });
        else
            each_tile(work, thread / lanes, threads / lanes, [&](u64 at) {
                for (u32 item = lane; item < work.tile; item += lanes) sum += work.plain[at + item];
            });
    } else {
        ondevice::StoredArray<float> array(*work.ref);
        Status first = Status::ok;
        const auto seen = [&](Status status) { first = first == Status::ok ? status : first; };
        if (work.tile == 1) {
            each_tile(work, thread, threads, [&](u64 at) {
                float value = 0;
                seen(array.load(at, value));
                sum += value;
            });
        } else {
            each_tile(work, thread / lanes, threads / lanes, [&](u64 at) {
                seen(array.visit_tile({at, work.tile}, [&](const float* items, u64, u64 count) {
                    for (u64 item = lane; item < count; item += lanes) sum += items[item];
                }));
            });
        }
        if (first != Status::ok) *work.failed = static_cast<int>(first);
    }
    work.sums[thread] = sum;
}

}  // namespace penstock::load
