// Starts the clients of ring_client_rig.hpp and of cache_client_rig.hpp on a GPU; does not wait.
#pragma once

#include <cuda_runtime_api.h>

#include "ondevice/nvme/cache_client_rig.hpp"
#include "ondevice/nvme/ring_client_rig.hpp"
#include "ondevice/nvme/witness_rig.hpp"

namespace penstock::ondevice {

cudaError_t launch_clients(const RingPlan& plan, cudaStream_t stream);
// Each a warp, all of whose lanes work: `lanes` of the plan is 32.
cudaError_t launch_clients(const CacheClientPlan& plan, cudaStream_t stream);
// What witnessed clients have seen since the last call, all of them done.
cudaError_t take_strayed(Strayed& seen);
// A warp whose lanes say that each is at a line of its own.
cudaError_t launch_scattered_lines(cudaStream_t stream);

}  // namespace penstock::ondevice
