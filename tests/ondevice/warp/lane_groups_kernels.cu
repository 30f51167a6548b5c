// The warps of lane_groups_rig.hpp, four to a block, so that they share the units of a multiprocessor.
#include "ondevice/warp/lane_groups_kernels.hpp"

namespace penstock::ondevice {
namespace {

constexpr unsigned kThreads = 128;

__global__ void __launch_bounds__(kThreads) lane_groups(LaneGroupsPlan plan) {
    const unsigned warp = (blockIdx.x * kThreads + threadIdx.x) / 32;
    if (warp < plan.warps) LaneGroups<Native>(plan, warp).run();
}

}  // namespace

cudaError_t launch_lane_groups(const LaneGroupsPlan& plan, cudaStream_t stream) {
    lane_groups<<<(plan.warps * 32 + kThreads - 1) / kThreads, kThreads, 0, stream>>>(plan);
    return cudaGetLastError();
}

}  // namespace penstock::ondevice
