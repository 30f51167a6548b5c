// Starting the kernels of tiles. Errors are CUDA's own.
#pragma once

#include <cuda_runtime_api.h>

#include "hmatrix/gpu/digit_tile.hpp"
#include "hmatrix/gpu/tile.hpp"

namespace penstock::hmatrix::gpu {

// y += each batch of the group * x; the t of the leaves in it is zero before. allow_tiles() once for a process and
// device before the first: the kernels want more shared memory than usual.
cudaError_t allow_tiles();
cudaError_t launch_tiles(const TileGroup<TileBatch>& group, const TileVectors<double>& vectors, cudaStream_t stream);
cudaError_t launch_tiles(const TileGroup<DigitBatch>& group, const TileVectors<float>& vectors, cudaStream_t stream);

}  // namespace penstock::hmatrix::gpu
