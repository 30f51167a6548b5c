// Starts the warps of lane_groups_rig.hpp on a GPU, and does not wait for them.
#pragma once

#include <cuda_runtime_api.h>

#include "ondevice/warp/lane_groups_rig.hpp"

namespace penstock::ondevice {

cudaError_t launch_lane_groups(const LaneGroupsPlan& plan, cudaStream_t stream);

}  // namespace penstock::ondevice
