// The question to a machine profile about a request, and the answer: predicted seconds of every path.
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
    FirstTouch first_touch = FirstTouch::none;  // none: unknown
    bool aligned = true;
    bool synced = false;                        // for writes: the time until the data is on stable storage
    std::uint64_t bytes = 0;

    friend bool operator==(const CostQuestion&, const CostQuestion&) = default;
};

// The best measured way of one path. Shape fields of 0 leave the choice to the policy.
struct PathCost {
    PathKind path = PathKind::automatic;
    std::uint32_t workers = 0;
    std::uint32_t depth = 0;
    std::uint64_t chunk_bytes = 0;
    double seconds = 0;
    std::uint32_t curve = 0;    // the number of the curve that gave the prediction, from 1
    std::uint32_t samples = 0;  // measurements of the sizes that it was interpolated from
};

inline constexpr std::size_t kCostedPaths = kPathKinds;
struct PathCosts {
    std::array<PathCost, kCostedPaths> found;
    std::size_t count = 0;
    std::span<const PathCost> all() const& noexcept { return {found.data(), count}; }
    std::span<const PathCost> all() const&& = delete;  // deleted: the span would outlive the temporary
};

}  // namespace penstock::policy
