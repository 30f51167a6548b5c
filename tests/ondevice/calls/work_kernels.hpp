// Starts the callers of work_rig.hpp on a GPU, and does not wait for them.
#pragma once

#include <cuda_runtime_api.h>

#include "ondevice/calls/work_rig.hpp"

namespace penstock::ondevice {

cudaError_t launch_calls(const CallsPlan& plan, u32 lanes, cudaStream_t stream);

}  // namespace penstock::ondevice
