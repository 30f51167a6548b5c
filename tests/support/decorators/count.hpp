// The count decorator: how many operations, bytes and errors passed through a path. Any thread may read the counts.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "path/path.hpp"

namespace penstock::path {

// The counters are relaxed. Each is exact, but two that are read together may differ by one operation.
struct PathCounters {
    std::atomic<std::uint64_t> submitted{0};
    std::atomic<std::uint64_t> completed{0};
    std::atomic<std::uint64_t> failed{0};        // completed with a status other than ok
    std::atomic<std::uint64_t> short_counts{0};  // ok with fewer bytes than requested
    std::atomic<std::uint64_t> read_bytes{0};
    std::atomic<std::uint64_t> write_bytes{0};
    std::atomic<std::uint64_t> lent_bytes{0};  // included in read_bytes
    std::atomic<std::uint64_t> peak_in_flight{0};
};

// Several paths may share counters.
std::unique_ptr<Path> counted(std::unique_ptr<Path> inner, std::shared_ptr<PathCounters> counters);

}  // namespace penstock::path
