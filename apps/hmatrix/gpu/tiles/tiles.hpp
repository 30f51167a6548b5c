// Starting the kernels of tiles. Errors are CUDA's own.
#pragma once

#include <cuda_runtime_api.h>

#include "hmatrix/gpu/digits/digit_tile.hpp"
#include "hmatrix/gpu/tiles/tile.hpp"

namespace penstock::hmatrix::gpu {

// y += each batch of the group * x; the t of the leaves in it is zero before. allow_tiles() once for a process and
// device before the first: the kernels want more shared memory than usual. It tells whether launches can overlap.
struct TileLaunch {
    cudaStream_t stream;
    bool overlap;
    bool behind;  // another launch_tiles() is the last on the stream, and nothing but y and t passes between them
};
cudaError_t allow_tiles(bool& overlap);
cudaError_t launch_tiles(const TileGroup<TileBatch>& group, const TileVectors<double>& vectors, const TileLaunch& how);
cudaError_t launch_tiles(const TileGroup<DigitBatch>& group, const TileVectors<float>& vectors, const TileLaunch& how);

}  // namespace penstock::hmatrix::gpu
