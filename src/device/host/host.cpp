// The emulated GPU: the Device contract on ordinary memory, so that everything can run and be tested without a GPU.
//
// It has separate memory with a table of its pointers, asynchronous in-order streams, and a cost model. It is as strict
// as a GPU on purpose: invalid pointers are errors, and only events order the work of different streams.
#include <utility>

#include "device/host/host_memory.hpp"
#include "device/host/host_stream.hpp"
#include "penstock/device.hpp"

namespace penstock {
namespace device {
namespace {

class HostDevice final : public Device {
  public:
    explicit HostDevice(const HostDeviceOptions& options)
        : memory_(std::make_shared<HostMemory>(options.memory_bytes)),
          cost_{options.bandwidth_bytes_per_s, options.latency_ns},
          registers_mappings_(options.registers_mappings) {}

    const std::string& name() const noexcept override { return name_; }

    DeviceInfo info() override {
        DeviceInfo info;
        info.name = name_;
        info.model = "emulated GPU on host memory";
        info.emulated = true;
        info.total_bytes = memory_->capacity_bytes();
        info.free_bytes = memory_->free_bytes();
        info.registers_mappings = registers_mappings_;
        return info;
    }

    void* allocate(MemoryKind kind, std::uint64_t bytes) override { return memory_->allocate(kind, bytes); }
    void release(MemoryKind, void* memory) noexcept override { memory_->release(memory); }

    bool register_host(void* memory, std::uint64_t bytes, bool, std::string& why) override {
        if (registers_mappings_) return memory_->register_range(memory, bytes, why);
        why = "this emulated device refuses host registration (HostDeviceOptions::registers_mappings)";
        return false;
    }

    void unregister_host(void* memory) noexcept override { memory_->unregister_range(memory); }

    PointerInfo pointer_info(const void* memory) override {
        const auto region = memory_->find(memory);
        if (!region) return {};
        return {
            .known = true, .kind = region->kind(), .device_index = 0, .base = region->base(), .bytes = region->bytes()};
    }

    std::unique_ptr<Stream> make_stream() override { return std::make_unique<HostStream>(memory_, streams_, cost_); }
    std::unique_ptr<Event> make_event() override { return std::make_unique<HostEvent>(); }
    void enter_thread() override {}
    void enter_call() override {}
    void leave_call() noexcept override {}

    void synchronize_native(std::uintptr_t stream) override {
        if (stream != 0) streams_->with(stream, [](HostStream& one) { one.synchronize(); });
    }

  private:
    std::string name_ = "host";
    std::shared_ptr<HostMemory> memory_;  // streams share it
    std::shared_ptr<HostStreams> streams_ = std::make_shared<HostStreams>();
    HostCostModel cost_;
    bool registers_mappings_;
};

}  // namespace
}  // namespace device

std::shared_ptr<Device> make_host_device(const HostDeviceOptions& options) {
    if (options.bandwidth_bytes_per_s < 0) {
        throw Error(ErrorCode::invalid_argument, "open device host",
                    "an emulated bandwidth of fewer than 0 bytes a second", "use 0 for the speed of memory");
    }
    return std::make_shared<device::HostDevice>(options);
}

}  // namespace penstock
