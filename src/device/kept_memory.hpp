// KeptMemory: memory of a device that was given back, kept for the next one who asks.
//
// A driver takes longer to allocate and free some MiB than a copy takes to fill them, and holds up all other threads
// meanwhile. Programs that read batch after batch ask for the same sizes again. What must stay true: a block belongs to
// one holder at a time; no more than `most_bytes` are kept; and a block goes to its next holder only when the device
// has ended all work that was queued before it was given back, for kernels of the last holder may still use it.
// cudaFree waits for that work too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>

#include "penstock/types.hpp"

namespace penstock::device {

class KeptMemory {
  public:
    static constexpr std::uint64_t kLargestBlock = 64 * kMiB;
    static constexpr std::size_t kMostKeptBlocks = 256;
    static constexpr std::uint64_t kMostSpares = 16;
    static constexpr std::uint64_t kTurnsWithoutSpares = 1024;

    // What the device does, in any thread.
    struct MemorySource {
        std::function<void*(std::uint64_t)> allocate;  // throws Error
        std::function<void(void*)> release;            // throws nothing
        std::function<bool()> settle;  // waits for all work of the device; false where it cannot say that it has ended
    };

    // To wait for all work of the device takes longer than the rest. With several spare blocks of a size there is one
    // wait for as many takes. `spare_bytes`: of one size, for which new blocks are made rather than waited for.
    KeptMemory(MemorySource source, std::uint64_t most_bytes, std::uint64_t spare_bytes = 0);
    ~KeptMemory();
    KeptMemory(const KeptMemory&) = delete;
    KeptMemory& operator=(const KeptMemory&) = delete;

    // What is in the memory is left from its last holder. Throws what allocate() throws when nothing is kept any more.
    void* take(std::uint64_t bytes);
    // False where the memory is none of take(), or larger than kLargestBlock: then the caller releases it.
    bool give_back(void* memory) noexcept;
    // Whether the address lies in memory that was given back and has no holder.
    bool keeps(const void* address) const noexcept;
    std::uint64_t kept_bytes() const noexcept;

  private:
    struct SpareBlock {
        void* memory = nullptr;
        std::uint64_t bytes = 0;
        std::uint64_t turn = 0;  // when it was given back
    };

    // One block, or none. A block moves from list to list, which needs no memory: to give back cannot fail.
    using Blocks = std::list<SpareBlock>;

    // `may_wait`: else only one that is settled, or worth a wait.
    Blocks take_kept(std::uint64_t bytes, bool may_wait) noexcept;
    bool is_worth_a_wait(std::uint64_t bytes) const noexcept;
    Blocks try_new(std::uint64_t bytes);
    Blocks take_new(std::uint64_t bytes);
    void* allocate(std::uint64_t bytes);
    bool make_settled(const SpareBlock& block);
    void* hold(Blocks one);
    void keep(Blocks one, Blocks& released) noexcept;
    void release(const Blocks& blocks) noexcept;
    void release_all() noexcept;

    const MemorySource source_;
    const std::uint64_t most_bytes_, spare_bytes_;
    mutable std::mutex mutex_;       // guards what follows; no call of the device is made under it
    std::map<void*, Blocks> held_;   // each block that has a holder
    Blocks kept_;                    // the one that was given back first comes first
    std::uint64_t kept_bytes_ = 0;
    std::uint64_t turn_ = 0;          // of the last block that was given back
    std::uint64_t settled_turn_ = 0;  // the device has ended all that was queued before this turn
    std::uint64_t spares_turn_ = 0;   // before it no spare blocks are made: the device had no room for one
};

}  // namespace penstock::device
