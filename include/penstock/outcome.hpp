// How a transfer ended: what moved, in which time, the error if there was one, and the evidence.
#pragma once

#include <cstdint>

#include "penstock/error.hpp"
#include "penstock/evidence.hpp"

namespace penstock {

// The end of a transfer. `bytes` counts from the start of the first range to the first byte that did not move.
struct Outcome {
    std::uint64_t bytes = 0;
    double seconds = 0;      // from start() to the last byte (and to stable storage when durable)
    ErrorInfo error;         // ok: everything asked moved, or the file ended (then bytes < asked and reached_end)
    bool reached_end = false;
    Evidence evidence;
    bool ok() const noexcept { return error.ok(); }
    const Outcome& or_throw() const;  // throws Error when not ok
};

}  // namespace penstock
