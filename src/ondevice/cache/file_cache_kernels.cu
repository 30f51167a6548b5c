// The kernels of file_cache_work.hpp: each warp is a worker, and the host says how many. Blocks are small, so that
// workers spread over all multiprocessors: one multiprocessor alone pulls little from host memory.
#include "ondevice/cache/file_cache_kernels.hpp"

namespace penstock::ondevice {
namespace {

constexpr unsigned kWarp = 32;
constexpr unsigned kWarpsPerBlock = 4;
constexpr unsigned kFewWorkers = 512;  // up to so many get a block each
// Blocks that a multiprocessor runs at once, with 64 registers a thread. Misses and hits wait most of their time, and
// other warps hide that. With 255 registers and two blocks, a gather moved half as many rows that were in the cache,
// and three quarters as many that were not. Without a bound nvcc 13.0 takes 168 registers, which leaves three blocks.
constexpr unsigned kBlocksAtOnce = 8;

__global__ void __launch_bounds__(kWarp* kWarpsPerBlock, kBlocksAtOnce)
    cache_work(const __grid_constant__ CacheWork work, u32 workers) {
    const u64 worker = (u64{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp;
    if (worker < workers) do_share(work, worker, workers);
}

__global__ void __launch_bounds__(kWarp* kWarpsPerBlock, kBlocksAtOnce)
    gather_work(const __grid_constant__ CacheWork work, u32 workers) {
    const u64 worker = (u64{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp;
    if (worker < workers) gather_share(work, worker, workers);
}

__global__ void __launch_bounds__(kWarp* kWarpsPerBlock, kBlocksAtOnce)
    gather_short_work(const __grid_constant__ CacheWork work, u32 workers) {
    const u64 worker = (u64{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp;
    if (worker < workers) gather_short_share(work, worker, workers);
}

__global__ void __launch_bounds__(kWarp* kWarpsPerBlock)
    order_work(const __grid_constant__ CacheWork work, u32 workers) {
    const u64 worker = (u64{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp;
    if (worker < workers) order_share(work, worker, workers);
}

}  // namespace

cudaError_t cache_kernel_workers(int device_index, u32& workers) {
    int processors = 0, blocks = 0;
    cudaError_t error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device_index);
    if (error == cudaSuccess) {
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, cache_work, kWarp * kWarpsPerBlock, 0);
    }
    workers = static_cast<u32>(processors * blocks) * kWarpsPerBlock;
    return error;
}

cudaError_t launch_cache_kernel(const CacheWork& work, u32 workers, cudaStream_t stream) {
    const unsigned warps = workers <= kFewWorkers ? 1 : kWarpsPerBlock;
    const unsigned blocks = (workers + warps - 1) / warps;
    const auto kernel = is_of_order(work.task)                  ? order_work
                        : work.task != CacheTask::gather_mapped ? cache_work
                        : work.row_bytes > kShortRow            ? gather_work
                                                                : gather_short_work;
    kernel<<<blocks, kWarp * warps, 0, stream>>>(work, workers);
    return cudaGetLastError();
}

}  // namespace penstock::ondevice
