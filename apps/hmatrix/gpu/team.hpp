// The threads that share a leaf: a warp, a block, or, on the host, one thread.
//
// The product in product.hpp is written once for all of them. Lanes of a team are the threads of one warp, which can
// sum among themselves; a block has several workers of 32 lanes. One thread on the host is one worker of one lane: it
// runs the very code that runs on a GPU, so the tests need none.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define PENSTOCK_BOTH __host__ __device__ __forceinline__
#define PENSTOCK_ALL_AT_ONCE _Pragma("unroll")
#else
#define PENSTOCK_BOTH inline
#define PENSTOCK_ALL_AT_ONCE
#endif

namespace penstock::hmatrix::gpu {

struct Alone {
    PENSTOCK_BOTH int rank() const { return 0; }  // of the thread in the team
    PENSTOCK_BOTH int size() const { return 1; }
    PENSTOCK_BOTH int lane() const { return 0; }
    PENSTOCK_BOTH int lanes() const { return 1; }
    PENSTOCK_BOTH int worker() const { return 0; }
    PENSTOCK_BOTH int workers() const { return 1; }
    PENSTOCK_BOTH void sync() const {}
    // Sum over `group` neighbouring lanes, a power of two: all of them get it.
    template <class Real>
    PENSTOCK_BOTH Real sum(Real value, int) const {
        return value;
    }
    // Sum over the lanes whose numbers are equal modulo `stride`, a power of two up to lanes().
    template <class Real>
    PENSTOCK_BOTH Real sum_apart(Real value, int) const {
        return value;
    }
    PENSTOCK_BOTH void add(double* to, double value) const { *to += value; }
    // The line at `place` will be read soon.
    PENSTOCK_BOTH void expect(const void*) const {}
};

#if defined(__CUDACC__)
struct OneWarp {
    __device__ __forceinline__ int rank() const { return static_cast<int>(threadIdx.x) % 32; }
    __device__ __forceinline__ int size() const { return 32; }
    __device__ __forceinline__ int lane() const { return rank(); }
    __device__ __forceinline__ int lanes() const { return 32; }
    __device__ __forceinline__ int worker() const { return 0; }
    __device__ __forceinline__ int workers() const { return 1; }
    __device__ __forceinline__ void sync() const { __syncwarp(); }
    template <class Real>
    __device__ __forceinline__ Real sum(Real value, int group) const {
        for (int step = group / 2; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
        return value;
    }
    template <class Real>
    __device__ __forceinline__ Real sum_apart(Real value, int stride) const {
        for (int step = stride; step < 32; step *= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
        return value;
    }
    __device__ __forceinline__ void add(double* to, double value) const { atomicAdd(to, value); }
    __device__ __forceinline__ void expect(const void* place) const {
        asm volatile("prefetch.global.L2 [%0];" ::"l"(place));
    }
};

struct OneBlock : OneWarp {
    __device__ __forceinline__ int rank() const { return static_cast<int>(threadIdx.x); }
    __device__ __forceinline__ int size() const { return static_cast<int>(blockDim.x); }
    __device__ __forceinline__ int lane() const { return rank() % 32; }
    __device__ __forceinline__ int worker() const { return rank() / 32; }
    __device__ __forceinline__ int workers() const { return size() / 32; }
    __device__ __forceinline__ void sync() const { __syncthreads(); }
};
#endif

// The smallest power of two that is at least `count`, at most `most` (a power of two).
PENSTOCK_BOTH int power_of_two(int count, int most) {
    int power = 1;
    while (power < count && power < most) power *= 2;
    return power;
}

}  // namespace penstock::hmatrix::gpu
