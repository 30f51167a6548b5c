// Owners of arrays in a device's memory, for the classes of this folder.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "penstock/device.hpp"

namespace penstock::hmatrix::gpu {

template <class Value>
class DeviceArray {
  public:
    DeviceArray() = default;
    DeviceArray(Device& device, std::int64_t count, MemoryKind kind = MemoryKind::device) : count_(count) {
        if (count == 0) return;
        void* memory = device.allocate(kind, static_cast<std::uint64_t>(count) * sizeof(Value));
        memory_ = std::shared_ptr<Value>(static_cast<Value*>(memory),
                                         [&device, kind](Value* of) { device.release(kind, of); });
    }
    // Copies `values` to the device. The copy is complete on return.
    DeviceArray(Device& device, Stream& stream, const std::vector<Value>& values)
        : DeviceArray(device, static_cast<std::int64_t>(values.size())) {
        if (values.empty()) return;
        stream.copy(CopyDirection::to_device, data(), values.data(), values.size() * sizeof(Value));
        stream.synchronize();
    }
    Value* data() const noexcept { return memory_.get(); }
    std::int64_t size() const noexcept { return count_; }

  private:
    std::shared_ptr<Value> memory_;
    std::int64_t count_ = 0;
};

}  // namespace penstock::hmatrix::gpu
