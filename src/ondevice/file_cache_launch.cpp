// See file_cache_launch.hpp.
#include "ondevice/file_cache_launch.hpp"

#include <algorithm>
#include <thread>
#include <vector>

namespace penstock::ondevice {
namespace {

void on_threads(const CacheWork& work, u32 workers) {
    std::vector<std::thread> threads;
    for (u32 worker = 1; worker < workers; ++worker) {
        threads.emplace_back([&work, worker, workers] { do_share(work, worker, workers); });
    }
    do_share(work, 0, workers);
    for (std::thread& thread : threads) thread.join();
}

}  // namespace

u32 most_workers(const DeviceInfo& device) {
    return device.emulated ? std::clamp(std::thread::hardware_concurrency(), 2u, 16u) : most_gpu_workers(device);
}

void launch(const DeviceInfo& device, Stream& stream, const CacheWork& work, u32 workers) {
    if (!device.emulated) return launch_on_gpu(device, stream, work, workers);
    stream.synchronize();  // the threads below are not on it
    on_threads(work, workers);
}

}  // namespace penstock::ondevice
