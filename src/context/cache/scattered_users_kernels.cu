// The users of scattered_users_rig.hpp on a GPU.
#include "context/cache/scattered_users_rig.hpp"

namespace penstock::test {
namespace {

constexpr unsigned kThreads = 64;

__global__ void __launch_bounds__(kThreads) scattered(ScatteredPlan plan) {
    ScatteredUser(plan, blockIdx.x * kThreads + threadIdx.x).run();
}

}  // namespace

int run_scattered_users_on_gpu(const ScatteredPlan& plan) {
    scattered<<<plan.users / kThreads, kThreads>>>(plan);
    const cudaError_t started = cudaGetLastError();
    return static_cast<int>(started != cudaSuccess ? started : cudaDeviceSynchronize());
}

}  // namespace penstock::test
