// How a function is marked that nvcc compiles for host and GPU and other compilers for the host: the one place that
// names CUDA's words. Plain, so that NVRTC and C++17 take it.
#pragma once

#if defined(__CUDACC__)
#define PENSTOCK_HOST_DEVICE __host__ __device__
#define PENSTOCK_ONDEVICE __host__ __device__ __forceinline__    // always inlined on a GPU
#define PENSTOCK_ONDEVICE_SLOW __host__ __device__ __noinline__  // called and never inlined on a GPU
#else
#define PENSTOCK_HOST_DEVICE
#define PENSTOCK_ONDEVICE inline
#define PENSTOCK_ONDEVICE_SLOW inline
#endif
