// Staging memory: what is registered with the device, handed out in blocks.
//
// Registering costs about 0.3 ms a MiB (pages made, pinned, mapped by the GPU), so memory stays registered when the
// slots that used it go: the next slots, of whatever shape, get a block of the same slab. What must stay true: the
// registered bytes never exceed the budget, and memory that something may still write to is never handed out again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "os/memory/arena.hpp"
#include "penstock/device.hpp"

namespace penstock::engine {

class Staging {
  public:
    Staging(Device& device, int numa_node, std::uint64_t budget_bytes)
        : device_(device), numa_node_(numa_node), budget_bytes_(budget_bytes) {}

    // A block of registered memory; registers more where the budget allows. Empty: there is no room now. Throws
    // Error{out_of_memory}. Requires: `bytes` is a multiple of kStagingStep, not 0, and within the budget.
    std::span<std::byte> take(std::uint64_t bytes);
    void give(std::span<std::byte> block);
    // As give(), for memory that the system may still write to: its slab is not used again.
    void retire(std::span<std::byte> block);
    // Fills all memory that may be handed out again. Requires: nothing uses it, not even blocks that are out.
    void fill(int byte_value);

    // What is in no block: registered, or yet to be.
    std::uint64_t free_bytes() const;
    std::uint64_t registered_bytes() const;
    std::uint64_t peak_bytes() const;

  private:
    class Slab {
      public:
        Slab(Device& device, const os::ArenaOptions& options);
        ~Slab();
        Slab(const Slab&) = delete;
        Slab& operator=(const Slab&) = delete;
        std::uint64_t bytes() const noexcept { return arena_.bytes(); }
        std::uint64_t free_bytes() const noexcept { return free_bytes_; }
        bool holds(const std::byte* memory) const noexcept;
        bool whole() const noexcept { return free_bytes_ == bytes(); }
        std::byte* take(std::uint64_t bytes);  // the lowest place that is large enough; nullptr when there is none
        void give(std::span<std::byte> block);
        void fill(int byte_value) const;
        bool retired = false;

      private:
        Device& device_;
        os::Arena arena_;
        std::map<std::uint64_t, std::uint64_t> free_;  // places that are free: offset, bytes; no two touch
        std::uint64_t free_bytes_;
    };

    // Requires: mutex_.
    std::byte* take_registered(std::uint64_t bytes);
    bool make_room(std::uint64_t bytes);
    std::uint64_t reserve(std::uint64_t bytes);  // 0: no room

    void uncount(std::uint64_t bytes);
    std::unique_ptr<Slab> make_slab(std::uint64_t bytes) const;
    std::byte* add_slab(std::uint64_t reserved, std::uint64_t bytes);
    void take_back(std::span<std::byte> block, bool retire);

    Device& device_;
    int numa_node_;
    std::uint64_t budget_bytes_;
    std::mutex grow_mutex_;     // taken before mutex_
    mutable std::mutex mutex_;
    std::vector<std::unique_ptr<Slab>> slabs_;
    std::uint64_t registered_bytes_ = 0;  // includes slabs that are being made
    std::uint64_t peak_bytes_ = 0;
};

}  // namespace penstock::engine
