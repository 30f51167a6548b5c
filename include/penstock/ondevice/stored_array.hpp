// Stored arrays in users' own kernels: what the host hands over as plain data, and the view that a thread makes of it.
//
//     __global__ void sum(const penstock::ondevice::StoredRef* ref, ...) {
//         penstock::ondevice::StoredArray<float> x(*ref);
//         float value = x[i];
#pragma once

#include "penstock/ondevice/array.hpp"
#include "penstock/ondevice/file_store.hpp"
#include "penstock/ondevice/replacement_any.hpp"

namespace penstock::ondevice {

using StoredCache = PageCacheRef<Native, FileStore<Native>, AnyReplacement>;

// What callers on one multiprocessor did, added up when they end.
struct alignas(64) CacheCounts {
    Tally tally;
    u32 waits[kWaitBuckets];
};

// One array of a cache. It lies in memory that the device reads and is the same for all threads.
struct StoredRef {
    StoredCache cache;
    CacheCounts* counts;
    u32 stripes;  // of counts
    u32 number;   // of the array
    u64 bytes;
    u64 wait_ns;   // the longest that one operation waits
    int* status;  // takes the first failure of operator[]; see Array::Options
    u32 writable;
    u32 reserved;

    PENSTOCK_ONDEVICE CacheCounts& stripe() const { return counts[Native::processor() % stripes]; }
};

// A caller's own way to a cache, which counts what it does and adds that up when it goes.
class CacheUser {
  public:
    PENSTOCK_ONDEVICE explicit CacheUser(const StoredRef& ref) : ref_(ref), cache(ref.cache) {
        cache.tally = &tally_;
        cache.waits = ref.stripe().waits;
        cache.store.mailbox.hint = hint();
    }
    PENSTOCK_ONDEVICE ~CacheUser() { merge<Native>(ref_.stripe().tally, tally_); }
    CacheUser(const CacheUser&) = delete;
    CacheUser& operator=(const CacheUser&) = delete;

    PENSTOCK_ONDEVICE const StoredRef& ref() const { return ref_; }

  private:
    // Different for each warp, so that each finds a slot of its own at once.
    static PENSTOCK_ONDEVICE u32 hint() {
#if defined(__CUDA_ARCH__)
        const u32 thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        const u32 block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
        return (block * (blockDim.x * blockDim.y * blockDim.z) + thread) / 32;
#else
        return 0;
#endif
    }

    const StoredRef& ref_;
    Tally tally_{};

  public:
    StoredCache cache;
};

// The array as items of T. Not to be copied: every thread makes its own.
template <class T>
class StoredArray : private CacheUser, public Array<T, StoredCache> {
  public:
    PENSTOCK_ONDEVICE explicit StoredArray(const StoredRef& ref)
        : CacheUser(ref), Array<T, StoredCache>(CacheUser::cache, {ref.number, ref.bytes / sizeof(T), ref.wait_ns,
                                                                   ref.writable != 0, ref.status}) {}
};

}  // namespace penstock::ondevice
