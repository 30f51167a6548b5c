// Runs work of a page cache on a device: a kernel on a GPU, threads on the emulated one.
#pragma once

#include "ondevice/cache/file_cache_work.hpp"
#include "penstock/device.hpp"

namespace penstock::ondevice {

// How many workers fill the device: warps of a GPU, or threads.
u32 most_workers(const DeviceInfo& device);

// Work in its place on a stream: queued on that of a GPU, done on the emulated device, when what was queued before is.
// The memory that `work` points to can be reached by the device and stays until the stream is done. Throws Error.
// `device` is what it was once: to ask anew costs more than the launch.
void launch(const DeviceInfo& device, Stream& stream, const CacheWork& work, u32 workers);

// The part of real GPUs; the file of a build without CUDA has none of them.
u32 most_gpu_workers(const DeviceInfo& device);
void launch_on_gpu(const DeviceInfo& device, Stream& stream, const CacheWork& work, u32 workers);

}  // namespace penstock::ondevice
