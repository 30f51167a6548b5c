// The kernel of products of doubles (tile_product.hpp): a warp a tile, and so many warps that memory is never idle.
#include "hmatrix/gpu/tile_product.hpp"
#include "hmatrix/gpu/tiles.hpp"

namespace penstock::hmatrix::gpu {
namespace {

constexpr int kSharedBytes = kTileWarps * kTileNumbers * static_cast<int>(sizeof(double));

__global__ void __launch_bounds__(kTileThreads)
    multiply_tiles(const __grid_constant__ TileGroup group, int step, const TileVectors vectors) {
    extern __shared__ __align__(16) double shared[];
    __shared__ std::uint64_t arrivals[kTileWarps];
    const std::int32_t* const ends = group.blocks_end[step];
    const int block = static_cast<int>(blockIdx.x), warp = static_cast<int>(threadIdx.x) / 32;
    int number = 0;
    for (int half = kTileBatches / 2; half > 0; half /= 2) {
        if (number + half < group.count && ends[number + half - 1] <= block) number += half;
    }
    const TileBatch& batch = group.batches[number];
    const int place = (block - (number > 0 ? ends[number - 1] : 0)) * kTileWarps + warp;
    const int first = step == 0 ? 0 : batch.count;
    if (place >= (step == 0 ? batch.count : batch.right_count)) return;
    TileTeam<BringingWarp> team(BringingWarp(arrivals + warp), batch, shared + warp * kTileNumbers);
    team.run(batch.tiles[first + place], vectors);
}

}  // namespace

cudaError_t allow_tiles() {
    const cudaError_t error =
        cudaFuncSetAttribute(multiply_tiles, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    if (error != cudaSuccess) return error;
    return cudaFuncSetAttribute(multiply_tiles, cudaFuncAttributePreferredSharedMemoryCarveout,
                                cudaSharedmemCarveoutMaxShared);
}

cudaError_t launch_tiles(const TileGroup& group, const TileVectors& vectors, cudaStream_t stream) {
    for (int step = 0; step < 2; ++step) {
        const int blocks = group.blocks_end[step][group.count - 1];
        if (blocks > 0) multiply_tiles<<<blocks, kTileThreads, kSharedBytes, stream>>>(group, step, vectors);
    }
    return cudaGetLastError();
}

}  // namespace penstock::hmatrix::gpu
