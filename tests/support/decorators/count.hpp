// The count decorator: how many operations, bytes and errors went through a path, readable by any thread at any time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "penstock/path.hpp"

namespace penstock::path {

// Relaxed counters: each is exact by itself; two read together may be one operation apart.
struct PathCounters {
    std::atomic<std::uint64_t> submitted{0};
    std::atomic<std::uint64_t> completed{0};
    std::atomic<std::uint64_t> failed{0};        // completed with a status other than ok
    std::atomic<std::uint64_t> short_counts{0};  // ok with fewer bytes than asked
    std::atomic<std::uint64_t> read_bytes{0};
    std::atomic<std::uint64_t> write_bytes{0};
    std::atomic<std::uint64_t> lent_bytes{0};  // of read_bytes
    std::atomic<std::uint64_t> peak_in_flight{0};
};

// Several paths may share counters.
std::unique_ptr<Path> counted(std::unique_ptr<Path> inner, std::shared_ptr<PathCounters> counters);

}  // namespace penstock::path
