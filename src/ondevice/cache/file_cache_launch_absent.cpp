// Without CUDA there is no GPU whose work could be launched.
#include "ondevice/cache/file_cache_launch.hpp"

namespace penstock::ondevice {
namespace {

[[noreturn]] void refuse() {
    throw Error(ErrorCode::unsupported, "launch a kernel of the page cache", "this build has no CUDA",
                "build where nvcc is found, or use the device \"host\"");
}

}  // namespace

u32 most_gpu_workers(const DeviceInfo&) { refuse(); }
void launch_on_gpu(const DeviceInfo&, Stream&, const CacheWork&, u32) { refuse(); }

}  // namespace penstock::ondevice
