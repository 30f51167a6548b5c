// The kernel of file_cache_work.hpp: one warp a worker, and as many warps as were asked for. Blocks are small, so that
// workers spread over all multiprocessors: one of them alone pulls little from host memory.
#include "ondevice/cache/file_cache_kernels.hpp"

namespace penstock::ondevice {
namespace {

constexpr unsigned kWarp = 32;
constexpr unsigned kWarpsPerBlock = 4;
constexpr unsigned kFewWorkers = 512;  // so many spread by blocks of their own
// Of a multiprocessor at once, with 64 registers a thread: a miss and a hit alike are waited for most of their time,
// and what hides that is other warps. With 255 registers and two blocks, half as many rows came that were here, and
// three quarters as many that were not; left to itself, nvcc 13.0 takes 168 and there are three.
constexpr unsigned kBlocksAtOnce = 8;

__global__ void __launch_bounds__(kWarp* kWarpsPerBlock, kBlocksAtOnce) cache_work(CacheWork work, u32 workers) {
    const u64 worker = (u64{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp;
    if (worker < workers) do_share(work, worker, workers);
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
    cache_work<<<(workers + warps - 1) / warps, kWarp * warps, 0, stream>>>(work, workers);
    return cudaGetLastError();
}

}  // namespace penstock::ondevice
