// Converts plain values from C to C++: kinds, path names, memory, times.
//
// Numbers out of range are refused before they become an enum.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

#include "boundary.hpp"
#include "penstock/context.hpp"
#include "penstock/types.hpp"

namespace penstock::c {

inline MemoryKind checked_kind(std::int32_t kind) {
    if (kind < PENSTOCK_DEVICE || kind > PENSTOCK_SYSTEM) {
        refuse("check arguments", "memory kind " + std::to_string(kind) + " is unknown",
               "use PENSTOCK_DEVICE, PENSTOCK_PINNED, PENSTOCK_MANAGED or PENSTOCK_SYSTEM");
    }
    return static_cast<MemoryKind>(kind);
}

inline PathKind path_named(const char* name) {
    if (name == nullptr) return PathKind::automatic;
    if (const auto kind = path_from_string(name)) return *kind;
    refuse("check arguments", "unknown path '" + std::string(name) + "'", "use one of " + known_path_names());
}

// More milliseconds than the clock can hold mean: never.
inline Deadline deadline_after_ms(std::int64_t timeout_ms) {
    constexpr std::int64_t longest_ms = Clock::duration::max() / std::chrono::milliseconds(1);
    return Deadline::after(std::chrono::milliseconds(std::min(timeout_ms, longest_ms)));
}

inline MemoryView memory_view(const penstock_memory& memory) {
    check_reserved("penstock_memory", memory);
    return {memory.data, memory.bytes, checked_kind(memory.kind)};
}

}  // namespace penstock::c
