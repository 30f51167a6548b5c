// Kernels that make leaves from a user's functor, for source files that nvcc compiles.
//
// In one .cu file, include this header and the functor, and write PENSTOCK_HMATRIX_ON_GPU(YourFunctor) outside any
// namespace. C++17 is enough. The launch copies the functor's bytes to the kernel, so it may hold only numbers and
// pointers.
#pragma once

#if !defined(__CUDACC__)
#error "leaf_kernels.hpp is for source files that nvcc compiles; others include functor_on_gpu.hpp"
#endif

#include <cuda_runtime_api.h>

#include <type_traits>

#include "hmatrix/gpu/leaves/aca_team.hpp"

namespace penstock::hmatrix::gpu {

struct LeafWarp : OneWarp {
    template <class Value>
    __device__ __forceinline__ Value exchange(Value value, int step) const {
        return __shfl_xor_sync(0xffffffffu, value, step);
    }
};

struct LeafBlock : OneBlock {
    template <class Value>
    __device__ __forceinline__ Value exchange(Value value, int step) const {
        return __shfl_xor_sync(0xffffffffu, value, step);
    }
};

template <class Functor>
__global__ void __launch_bounds__(kWideThreads)
    leaves_by_blocks(const __grid_constant__ Functor functor, const __grid_constant__ Group group, int first) {
    __shared__ Findings shared[2 * kWideThreads / 32];
    const int at = first + static_cast<int>(blockIdx.x);
    AcaTeam<Functor, LeafBlock>(LeafBlock{}, functor, group, shared).run(group.tasks[at], group.results[at]);
}

template <class Functor>
__global__ void __launch_bounds__(kBlockOfLeafThreads)
    leaves_by_warps(const __grid_constant__ Functor functor, const __grid_constant__ Group group, int first) {
    const int warp = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (warp >= group.warps) return;
    const int at = first + warp;
    AcaTeam<Functor, LeafWarp>(LeafWarp{}, functor, group, nullptr).run(group.tasks[at], group.results[at]);
}

template <class Functor>
const char* launch_group(const void* functor, const Group& group, void* stream) {
    static_assert(std::is_trivially_copyable<Functor>::value, "the functor is copied to the GPU as bytes");
    const Functor& f = *static_cast<const Functor*>(functor);
    const auto queue = static_cast<cudaStream_t>(stream);
    constexpr int kWarps = kBlockOfLeafThreads / 32;
    // Large leaves first: small ones then fill the multiprocessors that are still idle.
    if (group.wide > 0) leaves_by_blocks<<<group.wide, kWideThreads, 0, queue>>>(f, group, 0);
    if (group.blocks > 0) {
        leaves_by_blocks<<<group.blocks, kBlockOfLeafThreads, 0, queue>>>(f, group, group.wide);
    }
    if (group.warps > 0) {
        const int blocks = (group.warps + kWarps - 1) / kWarps;
        leaves_by_warps<<<blocks, kBlockOfLeafThreads, 0, queue>>>(f, group, group.wide + group.blocks);
    }
    const cudaError_t code = cudaGetLastError();
    return code == cudaSuccess ? nullptr : cudaGetErrorString(code);
}

template <class Functor>
LaunchGroup group_launcher() {
    return &launch_group<Functor>;
}

}  // namespace penstock::hmatrix::gpu

#define PENSTOCK_HMATRIX_ON_GPU(Functor) \
    template penstock::hmatrix::gpu::LaunchGroup penstock::hmatrix::gpu::group_launcher<Functor>()
