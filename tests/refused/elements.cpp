// Uses of a cached element, one for each value of USE. 0 to 5 must compile and the others must not: the page may be
// written back at any time, and a change through its address would be lost. Compiled by g++, or by nvcc with its own
// atomics. check.cmake compiles them. This is not part of Penstock's own build.
#include "penstock/ondevice/stored_array.hpp"

using penstock::ondevice::StoredArray;
using penstock::ondevice::StoredRef;
using penstock::ondevice::u64;

#ifdef __CUDACC__
#define DEVICE __device__
#else
#define DEVICE
u64 atomicAdd(u64* address, u64 value) { return __atomic_fetch_add(address, value, __ATOMIC_RELAXED); }
#endif

DEVICE u64 use(const StoredRef& ref, u64 i) {
    const StoredArray<u64> x(ref);
    u64 sum = 0;
#if USE == 0
    sum = x[i];
#elif USE == 1
    x[i] = x[i] + 1;
#elif USE == 2
    x.load(i, sum);
    x.store(i, sum + 1);
#elif USE == 3
    x.visit_tile({i, 4}, [&](const u64* items, u64, u64 count) { sum += items[count - 1]; });
#elif USE == 4
    atomicAdd(&sum, x[i]);
#elif USE == 5
    x.visit_tile({i, 4}, [&](const auto* items, u64, u64) { sum += *items; });
#elif USE == 6
    atomicAdd(&x[i], 1);
#elif USE == 7
    x[i] += 1;
#elif USE == 8
    ++x[i];
#elif USE == 9
    u64& element = x[i];
    atomicAdd(&element, 1);
#elif USE == 10
    u64* const element = x[i];
    atomicAdd(element, 1);
#elif USE == 11
    auto item = x[i];
    atomicAdd(&item, 1);
#elif USE == 12
    x.visit_tile({i, 4}, [&](const u64* items, u64, u64) { sum += atomicAdd(items, 1); });
#elif USE == 13
    x.visit_tile({i, 4}, [&](u64* items, u64, u64) { sum += atomicAdd(items, 1); });
#elif USE == 14
    x.visit_tile({i, 4}, [&](auto* items, u64, u64) { *items += 1; });
#else
#error "there is no such use"
#endif
    return sum;
}
