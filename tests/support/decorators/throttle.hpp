// The throttle decorator makes a path slower, to test engines and policies with storage that we do not have.
#pragma once

#include <cstdint>
#include <memory>

#include "path/path.hpp"

namespace penstock::path {

// Operations share one channel of `bandwidth_bytes_per_s` in order of submission. Then each waits `latency_ns`, and
// these waits overlap. Zeros: no throttling.
struct ThrottleOptions {
    double bandwidth_bytes_per_s = 0;
    std::uint64_t latency_ns = 0;
};

std::unique_ptr<Path> throttled(std::unique_ptr<Path> inner, const ThrottleOptions& options);

}  // namespace penstock::path
