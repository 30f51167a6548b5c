// The question a machine profile is asked of a request, and its answer: predicted seconds of every path.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "penstock/types.hpp"

namespace penstock::policy {

struct CostQuestion {
    Direction direction = Direction::read;
    bool cached = false;
    MemoryKind memory = MemoryKind::device;
    FirstTouch first_touch = FirstTouch::none;  // none: not known
    bool aligned = true;
    bool synced = false;                        // writes: until they are on stable storage
    std::uint64_t bytes = 0;

    friend bool operator==(const CostQuestion&, const CostQuestion&) = default;
};

// The best measured way of one path. Shape fields that are 0 were left to the policy.
struct PathCost {
    PathKind path = PathKind::automatic;
    std::uint32_t workers = 0;
    std::uint32_t depth = 0;
    std::uint64_t chunk_bytes = 0;
    double seconds = 0;
    std::uint32_t curve = 0;    // which curve said so, from 1
    std::uint32_t samples = 0;  // behind the sizes it was taken from
};

inline constexpr std::size_t kCostedPaths = kPathKinds;
struct PathCosts {
    std::array<PathCost, kCostedPaths> found;
    std::size_t count = 0;
    std::span<const PathCost> all() const& noexcept { return {found.data(), count}; }
    std::span<const PathCost> all() const&& = delete;  // it would be gone while it is looked through
};

}  // namespace penstock::policy
