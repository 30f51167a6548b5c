// Compares element loads through a page cache with the same loads from plain memory, which gives the cost of a hit.
//
// Every thread adds up elements of a stored array. `tile` is the number of elements that one call brings. 1 is
// array[i], and neighbours in a warp ask for neighbouring elements. A larger tile is one visit by the whole warp.
#pragma once

#include "penstock/ondevice/stored_array.hpp"

namespace penstock::load {

using ondevice::Status;
using ondevice::u32;
using ondevice::u64;

struct LoadsWork {
    ondevice::StoredRef ref;  // by value: kernel arguments cost no registers
    const float* plain;  // the same elements in memory; nullptr: use the cache
    u64 items;           // a multiple of the tile and of 32
    u32 rounds;
    u32 tile;
    u32 resident;  // blocks on a multiprocessor at once: 2, 3 or 4, with 64, 40 or 32 registers a thread
    u32 blocked;  // each worker has its own range; otherwise neighbours have neighbouring tiles
    float* sums;  // one for each thread, so that the compiler keeps all loads
    int* failed;  // receives a status
};

template <class Use>
PENSTOCK_ONDEVICE void each_tile(const LoadsWork& work, u64 worker, u64 workers, const Use& use) {
    const u64 share = work.items / workers / work.tile * work.tile;
    for (u32 round = 0; round < work.rounds; ++round) {
        if (work.blocked != 0)
            for (u64 at = worker * share; at < (worker + 1) * share; at += work.tile) use(at);
        else
            for (u64 at = worker * work.tile; at < work.items; at += workers * work.tile) use(at);
    }
}

// The number of a thread among all threads, and the width of its warp.
struct ThreadPlace {
    u64 thread, threads;
    u32 lanes;
};

// Loads elements one by one. The lanes of a warp are neighbours.
template <class Use>
PENSTOCK_ONDEVICE void each_element(const LoadsWork& work, const ThreadPlace& place, const Use& use) {
    LoadsWork rows = work;
    rows.tile = place.lanes;
    const u32 lane = ondevice::Native::lane();
    each_tile(rows, place.thread / place.lanes, place.threads / place.lanes, [&](u64 at) { use(at + lane); });
}

struct alignas(16) Four {
    float item[4];
};

// Returns the sum over a tile for lane `lane` of `lanes`. Reads 16 bytes a load with several loads in flight, as a
// kernel does that needs the memory's full rate.
PENSTOCK_ONDEVICE float sum_of_tile(const float* items, u32 count, u32 lane, u32 lanes) {
    constexpr u32 at_once = 8;
    const Four* const fours = reinterpret_cast<const Four*>(items);
    float sum = 0;
    for (u32 at = lane; at < count / 4; at += at_once * lanes) {
        Four held[at_once];
        PENSTOCK_UNROLLED
        for (u32 i = 0; i < at_once; ++i) held[i] = at + i * lanes < count / 4 ? fours[at + i * lanes] : Four{};
        PENSTOCK_UNROLLED
        for (u32 i = 0; i < at_once; ++i)
            sum += (held[i].item[0] + held[i].item[1]) + (held[i].item[2] + held[i].item[3]);
    }
    for (u32 at = count / 4 * 4 + lane; at < count; at += lanes) sum += items[at];
    return sum;
}

PENSTOCK_ONDEVICE void loads_from_memory(const LoadsWork& work, const ThreadPlace& place) {
    const u32 lane = ondevice::Native::lane();
    const float* const plain = work.plain;
    float sum = 0;
    if (work.tile == 1) {
        each_element(work, place, [&](u64 at) { sum += plain[at]; });
    } else {
        each_tile(work, place.thread / place.lanes, place.threads / place.lanes, [&](u64 at) {
            sum += sum_of_tile(plain + at, work.tile, lane, place.lanes);
        });
    }
    work.sums[place.thread] = sum;
}

PENSTOCK_ONDEVICE void loads_of_elements(const LoadsWork& work, const ThreadPlace& place) {
    const ondevice::StoredArray<float> array(work.ref);
    Status first = Status::ok;
    float sum = 0;
    each_element(work, place, [&](u64 at) {
        float value = 0;
        const Status status = array.load(at, value);
        first = first == Status::ok ? status : first;
        sum += value;
    });
    if (first != Status::ok) *work.failed = static_cast<int>(first);
    work.sums[place.thread] = sum;
}

PENSTOCK_ONDEVICE void loads_of_tiles(const LoadsWork& work, const ThreadPlace& place) {
    const ondevice::StoredArray<float> array(work.ref);
    const u32 lane = ondevice::Native::lane();
    Status first = Status::ok;
    float sum = 0;
    each_tile(work, place.thread / place.lanes, place.threads / place.lanes, [&](u64 at) {
        const Status status = array.visit_tile({at, work.tile}, [&](const float* items, u64, u64 count) {
            sum += sum_of_tile(items, static_cast<u32>(count), lane, place.lanes);
        });
        first = first == Status::ok ? status : first;
    });
    if (first != Status::ok) *work.failed = static_cast<int>(first);
    work.sums[place.thread] = sum;
}

enum class LoadsKind { memory, elements, tiles };

PENSTOCK_ONDEVICE LoadsKind kind_of(const LoadsWork& work) {
    if (work.plain != nullptr) return LoadsKind::memory;
    return work.tile == 1 ? LoadsKind::elements : LoadsKind::tiles;
}

template <LoadsKind kind>
PENSTOCK_ONDEVICE void loads_share(const LoadsWork& work, const ThreadPlace& place) {
    if constexpr (kind == LoadsKind::memory) loads_from_memory(work, place);
    else if constexpr (kind == LoadsKind::elements) loads_of_elements(work, place);
    else loads_of_tiles(work, place);
}

}  // namespace penstock::load
