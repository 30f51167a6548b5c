// The clients of ring_client_rig.hpp, of whose warps one lane works, and of nvme_cache_client_rig.hpp on a GPU.
#include "ondevice/ring_client_kernels.hpp"

namespace penstock::ondevice {
namespace {

constexpr unsigned kWarp = 32;

__global__ void __launch_bounds__(kWarp) ring_clients(RingPlan plan) {
    if (threadIdx.x == 0) RingClient(plan, blockIdx.x).run();
}

__global__ void __launch_bounds__(kWarp) cache_clients(CacheClientPlan plan) { CacheClient(plan, blockIdx.x).run(); }

}  // namespace

cudaError_t launch_clients(const CacheClientPlan& plan, cudaStream_t stream) {
    cache_clients<<<plan.clients, kWarp, 0, stream>>>(plan);
    return cudaGetLastError();
}

cudaError_t launch_clients(const RingPlan& plan, cudaStream_t stream) {
    ring_clients<<<plan.clients, kWarp, 0, stream>>>(plan);
    return cudaGetLastError();
}

}  // namespace penstock::ondevice
