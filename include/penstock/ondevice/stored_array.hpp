// Stored arrays in users' own kernels: the plain data that the host hands over, and the view that a thread makes of it.
//
//     __global__ void sum(const penstock::ondevice::StoredRef* ref, ...) {
//         penstock::ondevice::StoredArray<float> x(*ref);
//         float value = x[i];
#pragma once

#include "penstock/ondevice/array.hpp"
#include "penstock/ondevice/cache/replacement_any.hpp"
#include "penstock/ondevice/file_store.hpp"

namespace penstock::ondevice {

using StoredCache = PageCacheRef<Native, FileStore<Native>, AnyReplacement>;

// One array of a cache. It lies in memory that the device reads, and all threads share it.
struct StoredRef {
    StoredCache cache;
    u64 bytes;
    u64 wait_ns;  // the longest that one operation waits for a page
    int* status;  // takes the first failure of operator[]; see CachedArray::Options
    u32 number;   // the array's, in the cache
    u32 writable;
};

// A thread's view of the array as items of T. It keeps what hits need in registers.
template <class T>
class StoredArray : public CachedArray<T, StoredCache> {
  public:
    PENSTOCK_ONDEVICE explicit StoredArray(const StoredRef& ref)
        : CachedArray<T, StoredCache>(ref.cache,
                                {ref.number, ref.bytes / sizeof(T), ref.wait_ns, ref.writable != 0, ref.status}) {}
};

}  // namespace penstock::ondevice
