// HostBlocks: mappings of the emulated device that were given back, kept for the next one who asks.
//
// The first touch of 4 MiB takes longer than reading them: the kernel clears every page. Programs that read file after
// file ask for the same sizes again, so mappings that are given back stay. A program that goes on to other sizes does
// not find the room full of what it asks for no more: a block that no holder took meanwhile makes room for those that
// found none. What must stay true: a block belongs to one holder at a time, and no more than kMostKept bytes are kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "penstock/types.hpp"

namespace penstock::device {

inline constexpr std::uint64_t kPageBytes = 4096;

struct HostBlock {
    std::byte* base = nullptr;
    std::uint64_t bytes = 0;  // of the mapping: at least those that were asked for
};

class HostBlocks {
  public:
    static constexpr std::uint64_t kMostKept = 64 * kMiB;

    HostBlocks() = default;
    ~HostBlocks();
    HostBlocks(const HostBlocks&) = delete;
    HostBlocks& operator=(const HostBlocks&) = delete;

    // Memory whose content is left from its last holder, if it had one. Null, and errno set, where there is none.
    HostBlock take(std::uint64_t bytes) noexcept;
    static HostBlock take_new(std::uint64_t bytes) noexcept;  // of zeros
    static void unmap(const HostBlock& block) noexcept;
    void give_back(const HostBlock& block) noexcept;
    std::uint64_t kept_bytes() const noexcept;

  private:
    struct KeptBlock {
        std::byte* base;
        std::uint64_t turned_away_bytes;  // of all blocks, when this one was given back
    };

    HostBlock take_kept(std::uint64_t bytes) noexcept;
    bool keep(const HostBlock& block) noexcept;
    void unmap_idle(std::uint64_t most_bytes) noexcept;  // until no more are kept; the caller holds mutex_
    void unmap_all() noexcept;

    mutable std::mutex mutex_;
    std::multimap<std::uint64_t, KeptBlock> kept_;  // by size; guarded by mutex_
    std::uint64_t kept_bytes_ = 0;             // guarded by mutex_
    std::uint64_t turned_away_bytes_ = 0;      // of blocks that found no room; guarded by mutex_
};

}  // namespace penstock::device
