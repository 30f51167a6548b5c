// Runs work of a page cache on a device: a kernel on a GPU, threads on the emulated one.
#pragma once

#include "ondevice/file_cache_work.hpp"
#include "penstock/device.hpp"

namespace penstock::ondevice {

// How many workers fill the device: warps of a GPU, or threads.
u32 most_workers(Device& device);

// Queues the work on the stream of a GPU, or does it on the emulated device. The memory that `work` points to can be
// reached by the device and stays until the stream is done. Throws Error.
void launch(Device& device, Stream& stream, const CacheWork& work, u32 workers);

// The part of real GPUs; the file of a build without CUDA has none of them.
u32 most_gpu_workers(const DeviceInfo& device);
void launch_on_gpu(const DeviceInfo& device, Stream& stream, const CacheWork& work, u32 workers);

}  // namespace penstock::ondevice
