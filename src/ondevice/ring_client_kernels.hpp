// Starts the clients of ring_client_rig.hpp on a GPU; does not wait.
#pragma once

#include <cuda_runtime_api.h>

#include "ondevice/ring_client_rig.hpp"

namespace penstock::ondevice {

cudaError_t launch_ring_clients(const RingPlan& plan, cudaStream_t stream);

}  // namespace penstock::ondevice
