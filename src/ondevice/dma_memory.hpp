// Memory that a controller reaches, for queues, PRP lists and data areas. It is an interface, so that the same owners
// work over the process's memory (a controller in this process), an IOMMU's mappings, or memory of a GPU.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>

#include "penstock/ondevice/platform.hpp"

namespace penstock::ondevice {

// A block of memory, zero at first and aligned to the controller's page. `io` is the controller's address of `data`,
// and contiguous.
struct DmaBlock {
    u8* data = nullptr;
    u64 io = 0;
    u64 bytes = 0;
    std::shared_ptr<void> owner;  // the memory goes when the last copy goes
};

class DmaMemory {
  public:
    virtual ~DmaMemory() = default;
    // Throws Error (out_of_memory) if there is no memory.
    virtual DmaBlock allocate(u64 bytes) = 0;
    // Copies to the start of a block, which the caller may not be able to address. The copy is done when it returns.
    virtual void write(const DmaBlock& block, const void* from, u64 bytes) { std::memcpy(block.data, from, bytes); }
    // Copies from the start of a block.
    virtual void read(const DmaBlock& block, void* to, u64 bytes) const { std::memcpy(to, block.data, bytes); }
};

}  // namespace penstock::ondevice
