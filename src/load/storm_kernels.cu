// The kernels of storm_work.hpp and loads_work.hpp.
#include "load/storm_kernels.hpp"

namespace penstock::load {
namespace {

constexpr unsigned kWarp = 32;

__global__ void __launch_bounds__(1024) storm(StormWork work) {
    const unsigned warps = (blockDim.x + kWarp - 1) / kWarp;
    storm_share(work, u64{blockIdx.x} * warps + threadIdx.x / kWarp, u64{gridDim.x} * warps);
}

template <LoadsKind kind>
__global__ void __launch_bounds__(1024) loads(const __grid_constant__ LoadsWork work) {
    loads_share<kind>(work, {u64{blockIdx.x} * blockDim.x + threadIdx.x, u64{gridDim.x} * blockDim.x, kWarp});
}

}  // namespace

cudaError_t launch_storm(const StormWork& work, const Grid& grid, cudaStream_t stream) {
    storm<<<grid.blocks, grid.threads, 0, stream>>>(work);
    return cudaGetLastError();
}

cudaError_t launch_loads(const LoadsWork& work, const Grid& grid, cudaStream_t stream) {
    switch (kind_of(work)) {
        case LoadsKind::memory: loads<LoadsKind::memory><<<grid.blocks, grid.threads, 0, stream>>>(work); break;
        case LoadsKind::elements: loads<LoadsKind::elements><<<grid.blocks, grid.threads, 0, stream>>>(work); break;
        case LoadsKind::tiles: loads<LoadsKind::tiles><<<grid.blocks, grid.threads, 0, stream>>>(work); break;
    }
    return cudaGetLastError();
}

}  // namespace penstock::load
