// The clients of ring_client_rig.hpp, one working lane a warp, and those of cache_client_rig.hpp, on a GPU.
#include "ondevice/nvme/ring_client_kernels.hpp"

namespace penstock::ondevice {
namespace {

constexpr unsigned kWarp = 32;

__global__ void __launch_bounds__(kWarp) ring_clients(RingPlan plan) {
    if (threadIdx.x == 0) RingClient(plan, blockIdx.x).run();
}

template <class P>
__global__ void __launch_bounds__(kWarp) cache_clients(CacheClientPlan plan) {
    CacheClient<P>(plan, blockIdx.x).run();
}

__global__ void __launch_bounds__(kWarp) scattered_lines() {
    Witnessed::from(~Lanes{0}, 0u, 0, /*line=*/Native::lane());
}

}  // namespace

cudaError_t launch_scattered_lines(cudaStream_t stream) {
    scattered_lines<<<1, kWarp, 0, stream>>>();
    return cudaGetLastError();
}

cudaError_t launch_clients(const CacheClientPlan& plan, cudaStream_t stream) {
    if (plan.witnessed != 0) cache_clients<Witnessed><<<plan.clients, kWarp, 0, stream>>>(plan);
    else cache_clients<Native><<<plan.clients, kWarp, 0, stream>>>(plan);
    return cudaGetLastError();
}

cudaError_t take_strayed(Strayed& seen) {
    const cudaError_t read = cudaMemcpyFromSymbol(&seen, strayed, sizeof seen);
    const Strayed none{};
    return read != cudaSuccess ? read : cudaMemcpyToSymbol(strayed, &none, sizeof none);
}

cudaError_t launch_clients(const RingPlan& plan, cudaStream_t stream) {
    ring_clients<<<plan.clients, kWarp, 0, stream>>>(plan);
    return cudaGetLastError();
}

}  // namespace penstock::ondevice
