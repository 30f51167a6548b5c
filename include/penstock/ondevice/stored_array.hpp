// Stored arrays in users' own kernels: what the host hands over as plain data, and the view that a thread makes of it.
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

// One array of a cache. It lies in memory that the device reads and is the same for all threads.
struct StoredRef {
    StoredCache cache;
    u64 bytes;
    u64 wait_ns;  // the longest that one operation waits for a page
    int* status;  // takes the first failure of operator[]; see Array::Options
    u32 number;   // of the array
    u32 writable;
};

// The array as items of T: a thread's view, which keeps what hits need in registers.
template <class T>
class StoredArray : public Array<T, StoredCache> {
  public:
    PENSTOCK_ONDEVICE explicit StoredArray(const StoredRef& ref)
        : Array<T, StoredCache>(ref.cache,
                                {ref.number, ref.bytes / sizeof(T), ref.wait_ns, ref.writable != 0, ref.status}) {}
};

}  // namespace penstock::ondevice
