// See storm_launch.hpp.
#include "load/storm/storm_launch.hpp"

#include <algorithm>
#include <thread>
#include <vector>

namespace penstock::load {
namespace {

u64 threads_of(u64 most) {
    return std::clamp<u64>(std::thread::hardware_concurrency(), 1, std::max<u64>(most, 1));
}

template <class Share>
void on_threads(u64 most, const Share& share) {
    const u64 workers = threads_of(most);
    std::vector<std::thread> threads;
    for (u64 worker = 1; worker < workers; ++worker) threads.emplace_back([&, worker] { share(worker, workers); });
    share(0, workers);
    for (std::thread& thread : threads) thread.join();
}

template <class Work>
void run_channels(Device& device, Stream& stream, const Work& work, const Grid& grid) {
    const DeviceInfo info = device.info();
    if (!info.emulated) return channel_storm_on_gpu(info, stream, work, grid);
    on_threads(warps_of(grid), [&](u64 worker, u64 workers) { channel_share(work, worker, workers, 1); });
}

}  // namespace

u64 storm_workers(Device& device, const Grid& grid) {
    return device.info().emulated ? threads_of(warps_of(grid)) : warps_of(grid);
}

void run_rows(Device& device, Stream& stream, const RowsWork& work) {
    const DeviceInfo info = device.info();
    if (!info.emulated) return rows_on_gpu(info, stream, work);
    on_threads(work.count, [&](u64 worker, u64 workers) { rows_share(work, worker, workers); });
}

void run_storm(Device& device, Stream& stream, const StormWork& work, const Grid& grid) {
    const DeviceInfo info = device.info();
    if (!info.emulated) return storm_on_gpu(info, stream, work, grid);
    on_threads(warps_of(grid), [&](u64 worker, u64 workers) { storm_share(work, worker, workers, 1); });
}

void run_channel_storm(Device& device, Stream& stream, const MailboxWork& work, const Grid& grid) {
    run_channels(device, stream, work, grid);
}

void run_channel_storm(Device& device, Stream& stream, const NvmeWork& work, const Grid& grid) {
    run_channels(device, stream, work, grid);
}

void run_loads(Device& device, Stream& stream, const LoadsWork& work, const Grid& grid) {
    const DeviceInfo info = device.info();
    if (!info.emulated) return loads_on_gpu(info, stream, work, grid);
    on_threads(u64{grid.blocks} * grid.threads, [&](u64 worker, u64 workers) {
        const ThreadPlace place{worker, workers, 1};
        switch (kind_of(work)) {
            case LoadsKind::memory: return loads_from_memory(work, place);
            case LoadsKind::elements: return loads_of_elements(work, place);
            case LoadsKind::tiles: return loads_of_tiles(work, place);
        }
    });
}

}  // namespace penstock::load
