// Kernels of the page cache on real GPUs: what nvcc compiled, started on the stream of a Device.
#include "device/cuda/error.hpp"
#include "ondevice/cache/file_cache_kernels.hpp"
#include "ondevice/cache/file_cache_launch.hpp"

namespace penstock::ondevice {

using device::cuda_check;

u32 most_gpu_workers(const DeviceInfo& info) {
    u32 workers = 0;
    const device::ScopedCudaDevice scope(info.index);
    cuda_check(cache_kernel_workers(info.index, workers), "ask how many warps fill the GPU");
    return workers;
}

void launch_on_gpu(const DeviceInfo& info, Stream& stream, const CacheWork& work, u32 workers) {
    const device::ScopedCudaDevice scope(info.index);
    cuda_check(launch_cache_kernel(work, workers, static_cast<cudaStream_t>(stream.native_handle())),
               "launch a kernel of the page cache");
}

}  // namespace penstock::ondevice
