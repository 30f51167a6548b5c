// What the device header stands on: memory ordering, time and the threads of a warp, for nvcc, NVRTC and g++ alike.
//
// Everything above is written once, as templates over a platform, and runs unchanged on a GPU, on host threads (a warp
// there is one thread) under ThreadSanitizer, and on a platform of tests that tries every order of steps. So that the
// sanitizer can judge it, order comes from acquiring loads, releasing stores and acquire-release exchanges alone: there
// are no fences. Scope `device` is for what only one GPU touches; what the host touches too has scope `system`.
#pragma once

#if defined(__CUDACC__)
#define PENSTOCK_ONDEVICE __host__ __device__ __forceinline__
#else
#define PENSTOCK_ONDEVICE inline
#endif

#if defined(__CUDA_ARCH__)
#define PENSTOCK_UNROLLED _Pragma("unroll")
#define PENSTOCK_ROLLED _Pragma("unroll 1")
#else
#define PENSTOCK_UNROLLED
#define PENSTOCK_ROLLED
#endif

#if !defined(__CUDA_ARCH__)
#include <time.h>
#endif

namespace penstock::ondevice {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
static_assert(sizeof(u32) == 4 && sizeof(u64) == 8 && sizeof(void*) == 8, "LP64 only");

enum class Scope : u8 { device, system };

// Lanes of a warp that go on together.
using Lanes = u32;
inline constexpr Lanes kWholeWarp = ~0u;

// What an access orders. acquire: what was written before the store that is seen here is seen after it; release: what
// was done before is seen by who acquires what is stored here; relaxed: nothing, for words that only the caller changes
// at the time, or whose value is looked at again by an access that orders.
enum class Order : u8 { relaxed, acquire, release, both };

// A platform is this interface; all of it is static. T is u32 or u64, naturally aligned.
struct Native {
    template <Scope S, Order O = Order::acquire, class T>
    static PENSTOCK_ONDEVICE T load(const T* word);
    template <Scope S, Order O = Order::release, class T>
    static PENSTOCK_ONDEVICE void store(T* word, T value);
    // They return what was there before.
    template <Scope S, Order O = Order::both, class T>
    static PENSTOCK_ONDEVICE T add(T* word, T value);
    template <Scope S, Order O = Order::both, class T>
    static PENSTOCK_ONDEVICE T set_bits(T* word, T bits);
    template <Scope S, Order O = Order::both, class T>
    static PENSTOCK_ONDEVICE T clear_bits(T* word, T bits);
    // Whether `expected` was there and became `desired`. If not, `expected` becomes what was there.
    template <Scope S, Order O = Order::both, class T>
    static PENSTOCK_ONDEVICE bool swap_if(T* word, T& expected, T desired);
    // Two words, aligned to 16 bytes, in one piece: who sees the second sees the first. System scope. relaxed: besides
    // them nothing is ordered but what the caller has already read.
    template <Order O>
    static PENSTOCK_ONDEVICE void store_pair(u64* pair, u64 first, u64 second);
    // Orders nothing: for counts that are read when all is over. Of words that one GPU (or process) alone touches.
    template <class T>
    static PENSTOCK_ONDEVICE void tick(T* word, T value);

    static PENSTOCK_ONDEVICE u64 now_ns();             // of a clock that all threads of the platform share
    static PENSTOCK_ONDEVICE u64 cycles();             // for differences within one thread only
    static PENSTOCK_ONDEVICE void pause(u32 about_ns);  // lets others go on; may return at once

    // The calling threads of one warp. On the host each thread is a warp of one lane.
    static PENSTOCK_ONDEVICE u32 lane();
    static PENSTOCK_ONDEVICE u32 caller();     // a number that differs for most warps, to spread them by
    static PENSTOCK_ONDEVICE u32 processor();  // the multiprocessor that the caller runs on; 0 on the host
    static PENSTOCK_ONDEVICE Lanes active();
    static PENSTOCK_ONDEVICE void sync(Lanes lanes);
    static PENSTOCK_ONDEVICE Lanes same(Lanes lanes, u64 value);  // those of `lanes` that have the caller's value
    static PENSTOCK_ONDEVICE Lanes ballot(Lanes lanes, bool condition);
    template <class T>
    static PENSTOCK_ONDEVICE T from(Lanes lanes, T value, u32 source);  // the value of lane `source`
};

PENSTOCK_ONDEVICE u32 lowest(Lanes lanes) {
#if defined(__CUDA_ARCH__)
    return static_cast<u32>(__ffs(static_cast<int>(lanes)) - 1);
#else
    return static_cast<u32>(__builtin_ctz(lanes));
#endif
}

PENSTOCK_ONDEVICE u32 count(Lanes lanes) {
#if defined(__CUDA_ARCH__)
    return static_cast<u32>(__popc(lanes));
#else
    return static_cast<u32>(__builtin_popcount(lanes));
#endif
}

// The caller's place among `lanes`, of which it is one.
template <class P>
PENSTOCK_ONDEVICE u32 rank(Lanes lanes) {
    return count(lanes & ((Lanes{1} << P::lane()) - 1));
}

}  // namespace penstock::ondevice

#if defined(__CUDA_ARCH__)
#include "penstock/ondevice/native_gpu.hpp"
#else
#include "penstock/ondevice/native_host.hpp"
#endif
