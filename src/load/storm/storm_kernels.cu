// The kernels of storm_work.hpp, channel_work.hpp and loads_work.hpp.
#include "load/storm/storm_kernels.hpp"

namespace penstock::load {
namespace {


__global__ void __launch_bounds__(1024) storm(StormWork work) {
    const unsigned warps = (blockDim.x + kStormWarp - 1) / kStormWarp;
    storm_share(work, u64{blockIdx.x} * warps + threadIdx.x / kStormWarp, u64{gridDim.x} * warps, __activemask());
}

template <class Channel>
__global__ void __launch_bounds__(kChannelThreads, 1) channel_storm(const __grid_constant__ ChannelWork<Channel> work) {
    const unsigned warps = (blockDim.x + kStormWarp - 1) / kStormWarp;
    channel_share(work, u64{blockIdx.x} * warps + threadIdx.x / kStormWarp, u64{gridDim.x} * warps, __activemask());
}

template <class Channel>
cudaError_t launch_channels(const ChannelWork<Channel>& work, const Grid& grid, cudaStream_t stream) {
    channel_storm<Channel><<<grid.blocks, grid.threads, 0, stream>>>(work);
    return cudaGetLastError();
}

constexpr unsigned kLoadsThreads = 512;  // of a block, at most

template <LoadsKind kind, int resident>
__global__ void __launch_bounds__(kLoadsThreads, resident) loads(const __grid_constant__ LoadsWork work) {
    loads_share<kind>(work, {u64{blockIdx.x} * blockDim.x + threadIdx.x, u64{gridDim.x} * blockDim.x, kStormWarp});
}

__global__ void __launch_bounds__(256) rows(RowsWork work) {
    const u64 thread = u64{blockIdx.x} * blockDim.x + threadIdx.x;
    rows_share(work, thread / kStormWarp, u64{gridDim.x} * blockDim.x / kStormWarp);
}

template <LoadsKind kind>
cudaError_t launch_resident(const LoadsWork& work, const Grid& grid, cudaStream_t stream) {
    switch (work.resident) {
        case 2: loads<kind, 2><<<grid.blocks, grid.threads, 0, stream>>>(work); break;
        case 3: loads<kind, 3><<<grid.blocks, grid.threads, 0, stream>>>(work); break;
        case 4: loads<kind, 4><<<grid.blocks, grid.threads, 0, stream>>>(work); break;
        default: return cudaErrorInvalidValue;
    }
    return cudaGetLastError();
}

}  // namespace

cudaError_t launch_rows(const RowsWork& work, cudaStream_t stream) {
    constexpr unsigned blocks = 1024, threads = 256;
    rows<<<blocks, threads, 0, stream>>>(work);
    return cudaGetLastError();
}

cudaError_t launch_storm(const StormWork& work, const Grid& grid, cudaStream_t stream) {
    storm<<<grid.blocks, grid.threads, 0, stream>>>(work);
    return cudaGetLastError();
}

cudaError_t launch_channel_storm(const MailboxWork& work, const Grid& grid, cudaStream_t stream) {
    return launch_channels(work, grid, stream);
}

cudaError_t launch_channel_storm(const NvmeWork& work, const Grid& grid, cudaStream_t stream) {
    return launch_channels(work, grid, stream);
}

cudaError_t launch_loads(const LoadsWork& work, const Grid& grid, cudaStream_t stream) {
    switch (kind_of(work)) {
        case LoadsKind::memory: return launch_resident<LoadsKind::memory>(work, grid, stream);
        case LoadsKind::elements: return launch_resident<LoadsKind::elements>(work, grid, stream);
        case LoadsKind::tiles: return launch_resident<LoadsKind::tiles>(work, grid, stream);
    }
    return cudaErrorInvalidValue;
}

}  // namespace penstock::load
