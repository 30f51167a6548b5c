// ForwardingDevice: forwards every call to an emulated device. Tests override single functions.
#pragma once

#include <memory>
#include <string>

#include "penstock/device.hpp"

namespace penstock::device::test {

class ForwardingDevice : public Device {
  public:
    explicit ForwardingDevice(const HostDeviceOptions& options = {}) : device_(make_host_device(options)) {}
    const std::string& name() const noexcept override { return device_->name(); }
    DeviceInfo info() override { return device_->info(); }
    void* allocate(MemoryKind kind, std::uint64_t bytes) override { return device_->allocate(kind, bytes); }
    void release(MemoryKind kind, void* memory) noexcept override { device_->release(kind, memory); }
    bool register_host(void* memory, std::uint64_t bytes, bool read_only, std::string& why) override {
        return device_->register_host(memory, bytes, read_only, why);
    }
    void unregister_host(void* memory) noexcept override { device_->unregister_host(memory); }
    PointerInfo pointer_info(const void* memory) override { return device_->pointer_info(memory); }
    std::unique_ptr<Stream> make_stream() override { return device_->make_stream(); }
    std::unique_ptr<Event> make_event() override { return device_->make_event(); }
    void enter_thread() override { device_->enter_thread(); }
    void enter_call() override { device_->enter_call(); }
    void leave_call() noexcept override { device_->leave_call(); }
    void synchronize_native(std::uintptr_t stream) override { device_->synchronize_native(stream); }

  private:
    std::shared_ptr<Device> device_;
};

}  // namespace penstock::device::test
