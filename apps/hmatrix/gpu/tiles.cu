// The kernel of products: a warp a tile, and so many warps that memory is never idle.
#include "hmatrix/gpu/digit_product.hpp"
#include "hmatrix/gpu/tile_product.hpp"
#include "hmatrix/gpu/tiles.hpp"

namespace penstock::hmatrix::gpu {
namespace {

constexpr int kSharedBytes = kTileWarps * kTileBytes;

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
    if (place >= (step == 0 ? batch.count : batch.right_count)) return;
    constexpr int kShare = kTileBytes / static_cast<int>(sizeof(*shared));
    multiply_tile(BringingWarp(arrivals + warp), batch, shared + warp * kShare, first + place, vectors);
}

template <class Batch>
cudaError_t allow() {
    const auto kernel = multiply_tiles<Batch>;
    const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    if (error != cudaSuccess) return error;
    return cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                cudaSharedmemCarveoutMaxShared);
}

template <class Batch>
cudaError_t launch(const TileGroup<Batch>& group, const TileVectors<typename Batch::Real>& vectors,
                   cudaStream_t stream) {
    for (int step = 0; step < 2; ++step) {
        const int blocks = group.blocks_end[step][group.count - 1];
        if (blocks > 0) multiply_tiles<Batch><<<blocks, kTileThreads, kSharedBytes, stream>>>(group, step, vectors);
    }
    return cudaGetLastError();
}

}  // namespace

cudaError_t allow_tiles() {
    const cudaError_t error = allow<TileBatch>();
    return error == cudaSuccess ? allow<DigitBatch>() : error;
}

cudaError_t launch_tiles(const TileGroup<TileBatch>& group, const TileVectors<double>& vectors, cudaStream_t stream) {
    return launch(group, vectors, stream);
}

cudaError_t launch_tiles(const TileGroup<DigitBatch>& group, const TileVectors<float>& vectors, cudaStream_t stream) {
    return launch(group, vectors, stream);
}

}  // namespace penstock::hmatrix::gpu
