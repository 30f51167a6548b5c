// The threads that share a leaf or a tile: a warp, a block, or one thread on the host.
//
// The code of a team (tile_product.hpp, digit_product.hpp, aca_team.hpp) is written once for all of them. The lanes of
// a team are the threads of one warp, which can sum among themselves. A block has several workers of 32 lanes each. One
// host thread is one worker with one lane. It runs the same code as a GPU, so tests of this code need no GPU.
#pragma once

#include <cstdint>

#include "penstock/host_device.hpp"

#define PENSTOCK_BOTH PENSTOCK_ONDEVICE

namespace penstock::hmatrix::gpu {

// A range of numbers of 4 or 8 bytes to copy. Requires: `to` and `from` have the same offset modulo 16 bytes.
template <class Number>
struct Run {
    Number* to;
    const Number* from;
    int count;
};

struct Alone {
    PENSTOCK_BOTH int rank() const { return 0; }  // number of the thread in the team
    PENSTOCK_BOTH int size() const { return 1; }
    PENSTOCK_BOTH int lane() const { return 0; }
    PENSTOCK_BOTH int lanes() const { return 1; }
    PENSTOCK_BOTH int worker() const { return 0; }
    PENSTOCK_BOTH int workers() const { return 1; }
    PENSTOCK_BOTH void sync() const {}
    // Sum over groups of `group` neighbouring lanes; `group` is a power of two. All lanes of a group receive its sum.
    template <class Real>
    PENSTOCK_BOTH Real sum(Real value, int) const {
        return value;
    }
    template <class Real>
    PENSTOCK_BOTH void add(Real* to, Real value) const {
        *to += value;
    }
    // Calls use(i, sum of values[i] over the lanes) for each i, on one lane each.
    template <class Use>
    PENSTOCK_BOTH void sum_four(const double (&values)[4], const Use& use) const {
        for (int i = 0; i < 4; ++i) use(i, values[i]);
    }
    // Copies to shared memory. bring() copies the run `piece(i)` for each i below `count`; copy() copies one number for
    // the lane that calls it. arrived() returns when all of these copies are complete. copied() returns when those of
    // copy() are.
    template <class Piece>
    PENSTOCK_BOTH void bring(int count, const Piece& piece) const {
        for (int i = 0; i < count; ++i) {
            const auto run = piece(i);
            for (int k = 0; k < run.count; ++k) run.to[k] = run.from[k];
        }
    }
    template <class Number>
    PENSTOCK_BOTH void copy(Number* to, const Number* from) const {
        *to = *from;
    }
    PENSTOCK_BOTH void copied() const {}
    PENSTOCK_BOTH void arrived() const {}
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
    __device__ __forceinline__ void add(Real* to, Real value) const {
        atomicAdd(to, value);
    }
    // A lane keeps two of the four sums in the first step and one in the second: six exchanges instead of twenty.
    template <class Use>
    __device__ __forceinline__ void sum_four(const double (&values)[4], const Use& use) const {
        const bool high = (lane() & 16) != 0, odd = (lane() & 8) != 0;
        double first = high ? values[2] : values[0], second = high ? values[3] : values[1];
        first += __shfl_xor_sync(0xffffffffu, high ? values[0] : values[2], 16);
        second += __shfl_xor_sync(0xffffffffu, high ? values[1] : values[3], 16);
        double mine = odd ? second : first;
        mine += __shfl_xor_sync(0xffffffffu, odd ? first : second, 8);
        for (int step = 4; step > 0; step /= 2) mine += __shfl_xor_sync(0xffffffffu, mine, step);
        if (lane() % 8 == 0) use(lane() / 8, mine);
    }
    template <class Number>
    __device__ __forceinline__ void copy(Number* to, const Number* from) const {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared_place(to)), "l"(from),
                     "n"(sizeof(Number))
                     : "memory");
    }
    __device__ __forceinline__ void copied() const {
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncwarp();
    }
    static __device__ __forceinline__ unsigned shared_place(const void* place) {
        return static_cast<unsigned>(__cvta_generic_to_shared(place));
    }
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
// A warp whose copies are made by the copy unit of its multiprocessor, in whole runs of 16-byte units. A copy may
// include up to 15 bytes more at both ends. Requires: these bytes are readable in the source and free in shared memory.
// `arrival` is 8 bytes of shared memory; an object uses it once.
struct BringingWarp : OneWarp {
    unsigned arrival;
    __device__ __forceinline__ explicit BringingWarp(std::uint64_t* place) : arrival(shared_place(place)) {
        if (lane() == 0) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(arrival) : "memory");
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        }
        __syncwarp();
    }
    template <class Piece>
    __device__ __forceinline__ void bring(int count, const Piece& piece) const {
        unsigned bytes = 0;
        for (int i = lane(); i < count; i += 32) {
            const auto run = piece(i);
            const auto from = reinterpret_cast<std::uint64_t>(run.from) & ~std::uint64_t{15};
            const auto end = (reinterpret_cast<std::uint64_t>(run.from + run.count) + 15) & ~std::uint64_t{15};
            const auto size = static_cast<unsigned>(end - from);
            const unsigned to = shared_place(run.to) & ~15u;
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                         ::"r"(to), "l"(from), "r"(size), "r"(arrival)
                         : "memory");
            bytes += size;
        }
        asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1; }" ::"r"(arrival),
                     "r"(bytes)
                     : "memory");
    }
    __device__ __forceinline__ void arrived() const {
        asm volatile("cp.async.wait_all;" ::: "memory");
        unsigned there = 0;
        while (there == 0) {
            asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                         : "=r"(there)
                         : "r"(arrival)
                         : "memory");
        }
        __syncwarp();
    }
};
#else
// A warp whose lanes make the copies.
struct BringingWarp : OneWarp {
    __device__ __forceinline__ explicit BringingWarp(std::uint64_t*) {}
    template <class Piece>
    __device__ __forceinline__ void bring(int count, const Piece& piece) const {
        for (int i = 0; i < count; ++i) {
            const auto run = piece(i);
            for (int k = lane(); k < run.count; k += 32) copy(run.to + k, run.from + k);
        }
    }
    __device__ __forceinline__ void arrived() const { copied(); }
};
#endif

struct OneBlock : OneWarp {
    __device__ __forceinline__ int rank() const { return static_cast<int>(threadIdx.x); }
    __device__ __forceinline__ int size() const { return static_cast<int>(blockDim.x); }
    __device__ __forceinline__ int lane() const { return rank() % 32; }
    __device__ __forceinline__ int worker() const { return rank() / 32; }
    __device__ __forceinline__ int workers() const { return size() / 32; }
    __device__ __forceinline__ void sync() const { __syncthreads(); }
};
#endif

// The smallest power of two that is at least `count`, but at most `most` (a power of two).
PENSTOCK_BOTH int power_of_two(int count, int most) {
    int power = 1;
    while (power < count && power < most) power *= 2;
    return power;
}

}  // namespace penstock::hmatrix::gpu
