// Launchers of the page cache's kernels, for nvcc and the host compiler alike. Each returns the launch's error and does
// not wait.
#pragma once

#include <cuda_runtime_api.h>

#include "ondevice/cache/mapped_rows.hpp"

namespace penstock::ondevice {

// How many warps the device runs at once.
cudaError_t cache_kernel_workers(int device_index, u32& workers);
cudaError_t launch_cache_kernel(const CacheWork& work, u32 workers, cudaStream_t stream);

}  // namespace penstock::ondevice
