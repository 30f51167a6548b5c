// Memory of a Device as DmaMemory: the GPU's own, or page-locked memory that host and GPU reach.
#pragma once

#include "ondevice/dma_memory.hpp"
#include "penstock/device.hpp"

namespace penstock::ondevice {

class DeviceMemory : public DmaMemory {
  public:
    // Requires: the device outlives all blocks. `kind` is device or pinned.
    DeviceMemory(Device& device, MemoryKind kind) : device_(device), kind_(kind) {}

    DmaBlock allocate(u64 bytes) override {
        auto* const data = static_cast<u8*>(device_.allocate(kind_, bytes));
        DmaBlock block{data, reinterpret_cast<u64>(data), bytes,
                       std::shared_ptr<void>(data, [device = &device_, kind = kind_](void* memory) {
                           device->release(kind, memory);
                       })};
        const auto stream = device_.make_stream();
        stream->fill(data, bytes, 0);
        stream->synchronize();
        return block;
    }

    void write(const DmaBlock& block, const void* from, u64 bytes) override {
        const auto stream = device_.make_stream();
        stream->copy(CopyDirection::to_device, block.data, from, bytes);
        stream->synchronize();
    }

    void read(const DmaBlock& block, void* to, u64 bytes) const override {
        const auto stream = device_.make_stream();
        stream->copy(CopyDirection::to_host, to, block.data, bytes);
        stream->synchronize();
    }

  private:
    Device& device_;
    MemoryKind kind_;
};

}  // namespace penstock::ondevice
