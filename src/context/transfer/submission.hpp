// Submission: what one call asked for, beside its ranges. It lives as long as the call.
#pragma once

#include "context/state.hpp"

namespace penstock::context {

struct Submission {
    ContextState& context;
    Direction direction = Direction::read;
    MemoryKind kind = MemoryKind::device;
    bool blocking = false;  // the calling thread waits for the result
    const TransferOptions& options;
    Clock::time_point started = Clock::now();

    bool reading() const noexcept { return direction == Direction::read; }
    const char* operation() const noexcept { return to_string(direction); }
    // Pinned and plain memory is reached by the CPU; the rest is the device's.
    bool to_host() const noexcept { return kind == MemoryKind::pinned || kind == MemoryKind::system; }
    PathKind path() const noexcept {
        return options.path != PathKind::automatic ? options.path : context.options.path;
    }
};

}  // namespace penstock::context
