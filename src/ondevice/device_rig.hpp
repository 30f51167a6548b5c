// The device of a test, the emulated one or the one that PENSTOCK_TEST_DEVICE names, and memory of it with what the
// host put there.
#pragma once

#include <cstdlib>
#include <memory>
#include <vector>

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

}  // namespace penstock::ondevice
