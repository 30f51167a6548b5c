// Starts the work of a storm on a device. On a GPU this is a kernel. On the emulated device it is as many threads as
// there are cores, each in place of a warp, and the work is done when the call returns.
#pragma once

#include "load/storm/channel_work.hpp"
#include "load/storm/loads_work.hpp"
#include "load/storm/rows_work.hpp"
#include "load/storm/storm_work.hpp"
#include "penstock/device.hpp"

namespace penstock::load {

void run_storm(Device& device, Stream& stream, const StormWork& work, const Grid& grid);
void run_loads(Device& device, Stream& stream, const LoadsWork& work, const Grid& grid);
void run_rows(Device& device, Stream& stream, const RowsWork& work);
void run_channel_storm(Device& device, Stream& stream, const MailboxWork& work, const Grid& grid);
void run_channel_storm(Device& device, Stream& stream, const NvmeWork& work, const Grid& grid);
// Returns the number of warps or threads that take part in a storm.
u64 storm_workers(Device& device, const Grid& grid);

// For real GPUs. Throws in a build without CUDA.
void storm_on_gpu(const DeviceInfo& info, Stream& stream, const StormWork& work, const Grid& grid);
void channel_storm_on_gpu(const DeviceInfo& info, Stream& stream, const MailboxWork& work, const Grid& grid);
void channel_storm_on_gpu(const DeviceInfo& info, Stream& stream, const NvmeWork& work, const Grid& grid);
void loads_on_gpu(const DeviceInfo& info, Stream& stream, const LoadsWork& work, const Grid& grid);
void rows_on_gpu(const DeviceInfo& info, Stream& stream, const RowsWork& work);

}  // namespace penstock::load
