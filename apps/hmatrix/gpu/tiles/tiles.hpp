// Launches the kernels of tiles. The functions return CUDA's error codes.
#pragma once

#include <cuda_runtime_api.h>

#include "hmatrix/gpu/digits/digit_tile.hpp"
#include "hmatrix/gpu/tiles/tile.hpp"

namespace penstock::hmatrix::gpu {

// y += batch * x for each batch of the group. Requires: the t of the group's leaves is zero. Requires: the process
// calls allow_tiles() once for a device before the first launch, because the kernels need more shared memory than the
// default. allow_tiles() sets `overlap` if launches can overlap.
struct TileLaunch {
    cudaStream_t stream;
    bool overlap;
    bool behind;  // another launch_tiles() is the last work on the stream, and only y and t pass between the two
};
cudaError_t allow_tiles(bool& overlap);
cudaError_t launch_tiles(const TileGroup<TileBatch>& group, const TileVectors<double>& vectors, const TileLaunch& how);
cudaError_t launch_tiles(const TileGroup<DigitBatch>& group, const TileVectors<float>& vectors, const TileLaunch& how);

}  // namespace penstock::hmatrix::gpu
