// Storms on real GPUs: launches the kernels on the stream of a Device and throws their errors as Errors.
#include "device/cuda/error.hpp"
#include "load/storm/storm_kernels.hpp"
#include "load/storm/storm_launch.hpp"

namespace penstock::load {

using device::cuda_check;

namespace {

template <class Work>
void channels_on_gpu(const DeviceInfo& info, Stream& stream, const Work& work, const Grid& grid) {
    const device::ScopedCudaDevice scope(info.index);
    const auto native = static_cast<cudaStream_t>(stream.native_handle());
    cuda_check(launch_channel_storm(work, grid, native), "launch of a storm through a channel");
}

}  // namespace

void channel_storm_on_gpu(const DeviceInfo& info, Stream& stream, const MailboxWork& work, const Grid& grid) {
    channels_on_gpu(info, stream, work, grid);
}

void channel_storm_on_gpu(const DeviceInfo& info, Stream& stream, const NvmeWork& work, const Grid& grid) {
    channels_on_gpu(info, stream, work, grid);
}

void storm_on_gpu(const DeviceInfo& info, Stream& stream, const StormWork& work, const Grid& grid) {
    const device::ScopedCudaDevice scope(info.index);
    cuda_check(launch_storm(work, grid, static_cast<cudaStream_t>(stream.native_handle())), "launch of a storm");
}

void loads_on_gpu(const DeviceInfo& info, Stream& stream, const LoadsWork& work, const Grid& grid) {
    const device::ScopedCudaDevice scope(info.index);
    cuda_check(launch_loads(work, grid, static_cast<cudaStream_t>(stream.native_handle())), "launch of loads");
}

void rows_on_gpu(const DeviceInfo& info, Stream& stream, const RowsWork& work) {
    const device::ScopedCudaDevice scope(info.index);
    cuda_check(launch_rows(work, static_cast<cudaStream_t>(stream.native_handle())), "launch of a check of rows");
}

}  // namespace penstock::load
