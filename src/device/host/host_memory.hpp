// Memory of the emulated GPU: separate allocations, found by address and counted against a capacity.
//
// A GPU knows every pointer that it owns and faults on others. This table gives the emulation the same knowledge, so
// that tests without a GPU notice invalid, stale and foreign pointers. A region stays mapped while any shared_ptr holds
// it. So releasing memory during a copy does not crash the copy, and the next look-up reports it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>

#include "device/host/kept_blocks.hpp"
#include "penstock/device.hpp"

namespace penstock::device {

// What an allocation is given back to, and counted in.
struct HostOwner {
    std::shared_ptr<std::atomic<std::uint64_t>> used;
    std::shared_ptr<HostBlocks> blocks;
};

// One allocation, or one registered range of memory that belongs to the caller (`owned` is false).
class HostRegion {
  public:
    HostRegion(std::byte* base, std::uint64_t bytes, MemoryKind kind) : base_(base), bytes_(bytes), kind_(kind) {}
    // The destructor gives the memory back to `owner`.
    HostRegion(const HostBlock& block, std::uint64_t bytes, MemoryKind kind, HostOwner owner);
    ~HostRegion();
    HostRegion(const HostRegion&) = delete;
    HostRegion& operator=(const HostRegion&) = delete;

    const std::byte* base() const noexcept { return base_; }
    std::uint64_t bytes() const noexcept { return bytes_; }
    MemoryKind kind() const noexcept { return kind_; }
    bool owned() const noexcept { return owner_.used != nullptr; }
    bool holds(const void* memory, std::uint64_t bytes) const noexcept;

  private:
    std::byte* base_;
    std::uint64_t bytes_;
    MemoryKind kind_;
    std::uint64_t block_bytes_ = 0;
    HostOwner owner_;
};

class HostMemory {
  public:
    explicit HostMemory(std::uint64_t capacity_bytes);  // 0: half of the machine's memory

    void* allocate(MemoryKind kind, std::uint64_t bytes);  // throws Error{out_of_memory}
    void release(const void* memory) noexcept;             // ignores unknown pointers
    bool register_range(void* memory, std::uint64_t bytes, std::string& why);
    void unregister_range(const void* memory) noexcept;

    // Returns the region that contains the address, or nullptr.
    std::shared_ptr<const HostRegion> find(const void* memory) const;
    // Returns the region that contains [memory, memory + bytes) and may be the device side of a copy, or nullptr.
    std::shared_ptr<const HostRegion> find_device_side(const void* memory, std::uint64_t bytes) const;

    std::uint64_t capacity_bytes() const noexcept { return capacity_bytes_; }
    std::uint64_t free_bytes() const noexcept;

  private:
    using Regions = std::map<std::uintptr_t, std::shared_ptr<const HostRegion>>;
    void erase(const void* memory, bool owned) noexcept;
    void reserve(MemoryKind kind, std::uint64_t bytes);

    mutable std::shared_mutex mutex_;  // guards regions_
    Regions regions_;                  // by base address, without overlaps
    std::uint64_t capacity_bytes_;
    std::shared_ptr<std::atomic<std::uint64_t>> used_bytes_;   // device and managed memory
    std::shared_ptr<std::atomic<std::uint64_t>> other_bytes_;  // pinned and system memory: counted but not limited
    std::shared_ptr<HostBlocks> blocks_;
};

}  // namespace penstock::device
