// Starts the clients of ring_client_rig.hpp and of cache_client_rig.hpp on a GPU, and does not wait for them.
#pragma once

#include <cuda_runtime_api.h>

#include "ondevice/nvme/cache_client_rig.hpp"
#include "ondevice/nvme/ring_client_rig.hpp"
#include "ondevice/nvme/witness_rig.hpp"

namespace penstock::ondevice {

cudaError_t launch_clients(const RingPlan& plan, cudaStream_t stream);
// Each client is a warp, all of whose lanes work: the plan's `lanes` is 32.
cudaError_t launch_clients(const CacheClientPlan& plan, cudaStream_t stream);
// What witnessed clients have seen since the last call. Requires: all of them have ended.
cudaError_t take_strayed(Strayed& seen);
// Starts a warp in which each lane says that it is at another line.
cudaError_t launch_scattered_lines(cudaStream_t stream);

}  // namespace penstock::ondevice
