// Runs work of a page cache on a device: a kernel on a GPU, threads on the emulated one.
#pragma once

#include "ondevice/cache/mapped_rows.hpp"
#include "penstock/device.hpp"

namespace penstock::ondevice {

// How many workers fill the device: warps of a GPU, or threads.
u32 most_workers(const DeviceInfo& device);

// Queues the work on a GPU's stream, or does it on the emulated device when what was queued before is done. Requires:
// the device reaches the memory that `work` points to, which stays until the stream is done. Throws Error. The caller
// keeps `device`: to ask for it anew costs more than the launch.
void launch(const DeviceInfo& device, Stream& stream, const CacheWork& work, u32 workers);

// The same for real GPUs; a build without CUDA has none.
u32 most_gpu_workers(const DeviceInfo& device);
void launch_on_gpu(const DeviceInfo& device, Stream& stream, const CacheWork& work, u32 workers);

}  // namespace penstock::ondevice
