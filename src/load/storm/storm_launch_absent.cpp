// Replaces storm_launch_cuda.cpp in builds without CUDA, which have no GPU for a storm.
#include "load/storm/storm_launch.hpp"

namespace penstock::load {
namespace {

[[noreturn]] void refuse() {
    throw Error(ErrorCode::unsupported, "measure requests of the device", "this build has no CUDA",
                "build where nvcc is found, or use the device \"host\"");
}

}  // namespace

void storm_on_gpu(const DeviceInfo&, Stream&, const StormWork&, const Grid&) { refuse(); }
void channel_storm_on_gpu(const DeviceInfo&, Stream&, const MailboxWork&, const Grid&) { refuse(); }
void channel_storm_on_gpu(const DeviceInfo&, Stream&, const NvmeWork&, const Grid&) { refuse(); }
void loads_on_gpu(const DeviceInfo&, Stream&, const LoadsWork&, const Grid&) { refuse(); }
void rows_on_gpu(const DeviceInfo&, Stream&, const RowsWork&) { refuse(); }

}  // namespace penstock::load
