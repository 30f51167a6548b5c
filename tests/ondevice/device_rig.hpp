// The device of a test (the one that PENSTOCK_TEST_DEVICE names, else the emulated one), its memory with bytes that the
// host put there, and work on it.
#pragma once

#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#if defined(PENSTOCK_HAS_CUDA)
#include <cuda_runtime_api.h>
#endif

#include "ondevice/device_memory.hpp"

namespace penstock::ondevice {

inline std::shared_ptr<Device> test_device() {
    const char* device = std::getenv("PENSTOCK_TEST_DEVICE");
    return make_device(device != nullptr ? device : "host");
}

class OnDevice {
  public:
    OnDevice(Device& device, u64 bytes)
        : memory_(device, MemoryKind::device), block_(memory_.allocate(bytes)), device_(device) {}
    OnDevice(Device& device, const void* from, u64 bytes) : OnDevice(device, bytes) {
        memory_.write(block_, from, bytes);
    }
    u8* data() const { return block_.data; }
    std::vector<unsigned char> bytes() const {
        std::vector<unsigned char> got(block_.bytes);
        const auto stream = device_.make_stream();
        stream->copy(CopyDirection::to_host, got.data(), block_.data, got.size());
        stream->synchronize();
        return got;
    }

  private:
    DeviceMemory memory_;
    DmaBlock block_;
    Device& device_;
};

// Runs `body(i)` on a thread of the host for each of `count` workers.
template <class Body>
void run_threads(u32 count, const Body& body) {
    std::vector<std::jthread> threads;
    for (u32 worker = 0; worker < count; ++worker) threads.emplace_back([&body, worker] { body(worker); });
}

#if defined(PENSTOCK_HAS_CUDA)
// Runs what `launch(stream)` starts on a GPU to its end. Returns the error of the launch; throws an error of the run.
template <class Launch>
cudaError_t run_kernel(Device& device, const Launch& launch) {
    const auto stream = device.make_stream();
    const cudaError_t started = launch(static_cast<cudaStream_t>(stream->native_handle()));
    stream->synchronize();
    return started;
}
#endif

}  // namespace penstock::ondevice
