// The kernel of products. Each warp multiplies one tile, and there are so many warps that memory is never idle.
#include "hmatrix/gpu/digits/digit_product.hpp"
#include "hmatrix/gpu/tiles/tile_product.hpp"
#include "hmatrix/gpu/tiles/tiles.hpp"

namespace penstock::hmatrix::gpu {
namespace {

constexpr int kSharedBytes = kTileWarps * kTileBytes;

// On GPUs that support it, launches overlap: blocks of the next launch start when the blocks of this one no longer fill
// the GPU. Each launch waits for the end of the previous one before it ends itself. The end of the last launch is
// therefore the end of all.
__device__ void let_next_begin() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
__device__ void wait_for_last() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

template <class Batch>
__global__ void __launch_bounds__(kTileThreads)
    multiply_tiles(const __grid_constant__ TileGroup<Batch> group, int step,
                   const TileVectors<typename Batch::Real> vectors) {
    extern __shared__ __align__(16) std::uint64_t shared[];
    __shared__ std::uint64_t arrivals[kTileWarps];
    const std::int32_t* const ends = group.blocks_end[step];
    const int block = static_cast<int>(blockIdx.x), warp = static_cast<int>(threadIdx.x) / 32;
    int number = 0;
    for (int half = kTileBatches / 2; half > 0; half /= 2) {
        if (number + half < group.count && ends[number + half - 1] <= block) number += half;
    }
    const Batch& batch = group.batches[number];
    const int place = (block - (number > 0 ? ends[number - 1] : 0)) * kTileWarps + warp;
    const int first = step == 0 ? 0 : batch.count;
    let_next_begin();
    if (step != 0) wait_for_last();  // the previous launch makes t
    if (place < (step == 0 ? batch.count : batch.right_count)) {
        constexpr int kShare = kTileBytes / static_cast<int>(sizeof(*shared));
        auto team = tile_team(BringingWarp(arrivals + warp), batch, shared + warp * kShare);
        team.run(batch.tiles[first + place], vectors);
    }
    if (step == 0) wait_for_last();
}

template <class Batch>
cudaError_t allow(bool& overlap) {
    const auto kernel = multiply_tiles<Batch>;
    cudaFuncAttributes made{};
    cudaError_t error = cudaFuncGetAttributes(&made, kernel);
    overlap = made.ptxVersion >= 90 && made.binaryVersion >= 90;
    if (error != cudaSuccess) return error;
    error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    if (error != cudaSuccess) return error;
    return cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                cudaSharedmemCarveoutMaxShared);
}

template <class Batch>
cudaError_t launch(const TileGroup<Batch>& group, const TileVectors<typename Batch::Real>& vectors,
                   const TileLaunch& how) {
    bool behind = how.behind;
    for (int step = 0; step < 2; ++step) {
        const int blocks = group.blocks_end[step][group.count - 1];
        if (blocks == 0) continue;
        cudaLaunchAttribute attribute{};
        attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute.val.programmaticStreamSerializationAllowed = 1;
        cudaLaunchConfig_t config{};
        config.gridDim = dim3(static_cast<unsigned>(blocks));
        config.blockDim = dim3(kTileThreads);
        config.dynamicSmemBytes = kSharedBytes;
        config.stream = how.stream;
        config.attrs = &attribute;
        config.numAttrs = how.overlap && behind ? 1 : 0;
        behind = true;
        const cudaError_t error = cudaLaunchKernelEx(&config, multiply_tiles<Batch>, group, step, vectors);
        if (error != cudaSuccess) return error;
    }
    return cudaGetLastError();
}

}  // namespace

cudaError_t allow_tiles(bool& overlap) {
    bool digits = false;
    const cudaError_t error = allow<TileBatch>(overlap), other = allow<DigitBatch>(digits);
    overlap = overlap && digits;
    return error == cudaSuccess ? other : error;
}

cudaError_t launch_tiles(const TileGroup<TileBatch>& group, const TileVectors<double>& vectors, const TileLaunch& how) {
    return launch(group, vectors, how);
}

cudaError_t launch_tiles(const TileGroup<DigitBatch>& group, const TileVectors<float>& vectors, const TileLaunch& how) {
    return launch(group, vectors, how);
}

}  // namespace penstock::hmatrix::gpu
