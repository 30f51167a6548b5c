// For tests of mappings without a GPU: a device on which memory can be registered. It remembers the memory, or refuses
// it.
#pragma once

#include <string>

#include "device/forwarding_device.hpp"

namespace penstock::ondevice {

class Registers : public device::test::ForwardingDevice {
  public:
    DeviceInfo info() override {
        DeviceInfo info = ForwardingDevice::info();
        info.emulated = false;
        return info;
    }
    bool register_host(void* memory, std::uint64_t bytes, bool read_only, std::string& why) override {
        if (refuses) return why = "it does not like it", false;
        memory_ = memory, bytes_ = bytes, read_only_ = read_only;
        return true;
    }
    void unregister_host(void* memory) noexcept override { memory_ = memory == memory_ ? nullptr : memory_; }
    bool refuses = false, read_only_ = false;
    void* memory_ = nullptr;
    std::uint64_t bytes_ = 0;
};

}  // namespace penstock::ondevice
