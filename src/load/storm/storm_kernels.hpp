// Launchers of the storms' kernels, for nvcc and for the host compiler. Each returns the error of its launch and does
// not wait.
#pragma once

#include <cuda_runtime_api.h>

#include "load/storm/channel_work.hpp"
#include "load/storm/loads_work.hpp"
#include "load/storm/rows_work.hpp"
#include "load/storm/storm_work.hpp"

namespace penstock::load {

cudaError_t launch_storm(const StormWork& work, const Grid& grid, cudaStream_t stream);
cudaError_t launch_channel_storm(const MailboxWork& work, const Grid& grid, cudaStream_t stream);
cudaError_t launch_channel_storm(const NvmeWork& work, const Grid& grid, cudaStream_t stream);
cudaError_t launch_loads(const LoadsWork& work, const Grid& grid, cudaStream_t stream);
cudaError_t launch_rows(const RowsWork& work, cudaStream_t stream);

}  // namespace penstock::load
