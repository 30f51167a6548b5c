// The fault decorator: a path that does everything the contract allows, and on request some things that it forbids.
//
// The fault of an operation depends only on the seed, the script and the operation's number (counted from 0 as submit
// takes them), so a failing test can be repeated. The contract allows short counts, EINTR, EAGAIN, EIO, ENOSPC and
// delays. Lost completions and corrupted reads are forbidden and serve as negative controls.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "path/path.hpp"

namespace penstock::path {

enum class FaultKind : std::uint8_t {
    none,
    short_count,  // about half of the operation moves
    interrupted,  // EINTR, nothing moves
    again,        // EAGAIN, nothing moves
    io_error,     // EIO, nothing moves
    no_space,     // ENOSPC, nothing moves; writes only
    lose,         // the work is done, but its completion never arrives
    delay,        // the completion arrives later by FaultOptions::delay
    corrupt,      // reads only: one bit of the first byte is wrong; host memory only
};

struct FaultStep {
    std::uint64_t operation = 0;  // the operation's number
    FaultKind kind = FaultKind::none;
};

struct FaultOptions {
    std::uint64_t seed = 0;
    // Chances in [0, 1] for each operation, tried in this order. The first fault that is drawn counts.
    double short_count = 0, interrupted = 0, again = 0, lose = 0, delayed = 0;
    std::chrono::nanoseconds delay = std::chrono::milliseconds(2);
    // Offsets in any file. Bytes before them move. An operation that starts there or later (bad_from: before bad_to)
    // fails.
    std::optional<std::uint64_t> bad_from{};   // EIO, from this offset ...
    std::uint64_t bad_to = UINT64_MAX;         // ... to before this one
    std::optional<std::uint64_t> full_from{};  // writes: ENOSPC
    std::vector<FaultStep> script{};           // takes precedence over chance
};

std::unique_ptr<Path> faulty(std::unique_ptr<Path> inner, const FaultOptions& options);

}  // namespace penstock::path
