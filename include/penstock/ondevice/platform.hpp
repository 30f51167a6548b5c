// What the device headers stand on: memory ordering, time and the threads of a warp, for nvcc, NVRTC and g++ alike.
//
// The headers above are templates over a platform (native/native.hpp). They run unchanged on a GPU, on host threads
// (where a warp is one thread) under ThreadSanitizer, and on a platform of tests that tries every order of steps.
#pragma once

#include "penstock/host_device.hpp"
#include "penstock/ondevice/native/native.hpp"

#if defined(__CUDA_ARCH__)
#include "penstock/ondevice/native/native_gpu.hpp"
#define PENSTOCK_UNROLLED _Pragma("unroll")
#define PENSTOCK_ROLLED _Pragma("unroll 1")
#else
#include "penstock/ondevice/native/native_host.hpp"
#define PENSTOCK_UNROLLED
#define PENSTOCK_ROLLED
#endif

namespace penstock::ondevice {

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

// The caller's place among `lanes`. Requires: the caller is one of them.
template <class P>
PENSTOCK_ONDEVICE u32 rank(Lanes lanes) {
    return count(lanes & ((Lanes{1} << P::lane()) - 1));
}

}  // namespace penstock::ondevice
