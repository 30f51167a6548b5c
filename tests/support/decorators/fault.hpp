// The fault decorator: a path on a bad day. Everything the contract allows a path to do, and some things it does not.
//
// What happens to an operation depends only on the seed, the script and its number (counted from 0, as taken by
// submit), so a failing test can be run again. Allowed by the contract: short counts, EINTR, EAGAIN, EIO, ENOSPC,
// delays. Not allowed, for negative controls: lost completions and corrupted reads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "penstock/path.hpp"

namespace penstock::path {

enum class FaultKind : std::uint8_t {
    none,
    short_count,  // about half of the operation moves
    interrupted,  // EINTR, nothing moves
    again,        // EAGAIN, nothing moves
    io_error,     // EIO, nothing moves
    no_space,     // ENOSPC, nothing moves; writes only
    lose,         // the work is done, its completion is never seen
    delay,        // the completion comes FaultOptions::delay later
    corrupt,      // reads only: one bit of the first byte is wrong; host memory only
};

struct FaultStep {
    std::uint64_t operation = 0;  // number
    FaultKind kind = FaultKind::none;
};

struct FaultOptions {
    std::uint64_t seed = 0;
    // Chances in [0, 1] for each operation; tried in this order, the first that hits counts.
    double short_count = 0, interrupted = 0, again = 0, lose = 0, delayed = 0;
    std::chrono::nanoseconds delay = std::chrono::milliseconds(2);
    // Bytes of any file: what comes before moves, an operation that starts here or beyond (bad_from: up to bad_to)
    // fails.
    std::optional<std::uint64_t> bad_from{};   // EIO, from this offset ...
    std::uint64_t bad_to = UINT64_MAX;         // ... to before this one
    std::optional<std::uint64_t> full_from{};  // writes: ENOSPC
    std::vector<FaultStep> script{};           // goes before chance
};

std::unique_ptr<Path> faulty(std::unique_ptr<Path> inner, const FaultOptions& options);

}  // namespace penstock::path
