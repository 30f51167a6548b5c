// Passes as kernels: a thread has a body.
#include "nbody/body_kernels.hpp"

namespace penstock::nbody {
namespace {

constexpr int kThreads = 128;

template <class Pass>
__global__ void __launch_bounds__(kThreads) each_body(const __grid_constant__ Pass pass) {
    const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
    if (i < pass.all.count) pass(i);
}

template <class Pass>
cudaError_t launch_over(const Pass& pass, cudaStream_t stream) {
    const auto blocks = static_cast<unsigned>((pass.all.count + kThreads - 1) / kThreads);
    each_body<Pass><<<blocks, kThreads, 0, stream>>>(pass);
    return cudaGetLastError();
}

}  // namespace

cudaError_t launch(const Evaluate& pass, cudaStream_t stream) { return launch_over(pass, stream); }
cudaError_t launch(const Correct& pass, cudaStream_t stream) { return launch_over(pass, stream); }

}  // namespace penstock::nbody
