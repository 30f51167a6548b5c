// The callers of work_rig.hpp, a warp a block.
#include "ondevice/calls/work_kernels.hpp"

namespace penstock::ondevice {
namespace {

__global__ void __launch_bounds__(32) callers(CallsPlan plan) { CallsWork(plan, blockIdx.x).run(); }

}  // namespace

cudaError_t launch_calls(const CallsPlan& plan, u32 lanes, cudaStream_t stream) {
    callers<<<plan.warps, lanes, 0, stream>>>(plan);
    return cudaGetLastError();
}

}  // namespace penstock::ondevice
