// Starts a storm's work on a device: a kernel on a GPU; on the emulated device as many threads as there are cores, each
// a warp, and done when it returns.
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
// Who take part in a storm.
u64 storm_workers(Device& device, const Grid& grid);

// The part of real GPUs; a build without CUDA throws.
void storm_on_gpu(const DeviceInfo& info, Stream& stream, const StormWork& work, const Grid& grid);
void channel_storm_on_gpu(const DeviceInfo& info, Stream& stream, const MailboxWork& work, const Grid& grid);
void channel_storm_on_gpu(const DeviceInfo& info, Stream& stream, const NvmeWork& work, const Grid& grid);
void loads_on_gpu(const DeviceInfo& info, Stream& stream, const LoadsWork& work, const Grid& grid);
void rows_on_gpu(const DeviceInfo& info, Stream& stream, const RowsWork& work);

}  // namespace penstock::load
