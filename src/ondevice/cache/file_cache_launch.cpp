// See file_cache_launch.hpp.
#include "ondevice/cache/file_cache_launch.hpp"

#include <algorithm>
#include <system_error>
#include <thread>
#include <vector>

namespace penstock::ondevice {
namespace {

void share_of(const CacheWork& work, u32 worker, u32 workers) {
    if (is_of_order(work.task)) order_share(work, worker, workers);
    else if (work.task == CacheTask::gather_mapped && work.row_bytes <= 16) gather_short_share(work, worker, workers);
    else if (work.task == CacheTask::gather_mapped) gather_share(work, worker, workers);
    else do_share(work, worker, workers);
}

// Does the work on threads. The caller also does the shares for which the system gives no thread, since no worker waits
// for another.
void on_threads(const CacheWork& work, u32 workers) {
    std::vector<std::thread> threads;
    threads.reserve(workers);
    u32 next = 1;
    try {
        for (; next < workers; ++next)
            threads.emplace_back([&work, worker = next, workers] { share_of(work, worker, workers); });
    } catch (const std::system_error&) {
    }
    share_of(work, 0, workers);
    for (; next < workers; ++next) share_of(work, next, workers);
    for (std::thread& thread : threads) thread.join();
}

}  // namespace

u32 most_workers(const DeviceInfo& device) {
    return device.emulated ? std::clamp(std::thread::hardware_concurrency(), 2u, 16u) : most_gpu_workers(device);
}

void launch(const DeviceInfo& device, Stream& stream, const CacheWork& work, u32 workers) {
    if (!device.emulated) return launch_on_gpu(device, stream, work, workers);
    stream.synchronize();  // the threads below do not run on the stream
    on_threads(work, workers);
}

}  // namespace penstock::ondevice
