// What this machine allows a process: limits, page size, kernel, and whether the asynchronous interfaces may be used.
//
// Each probe makes the real call and keeps the reason if it is refused, for `doctor` and for error messages.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace penstock::os {

inline constexpr long kCachestat = 451;  // number of the system call, the same on all architectures
inline constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

struct Ability {
    bool usable = false;
    int system_code = 0;  // errno when not usable
    std::string cause;    // why it is not usable, and what would change that
};

Ability probe_io_uring();
Ability probe_native_aio();  // takes 30 to 40 ms: io_destroy waits for all processors
Ability probe_cachestat();

struct Limits {
    std::string kernel;   // "6.8.0-60-generic"
    std::string machine;  // "x86_64", "aarch64"
    std::uint64_t page_bytes = 0;
    std::uint64_t memlock_bytes = 0;  // RLIMIT_MEMLOCK, soft limit, or kUnlimited
    std::uint64_t open_files = 0;     // RLIMIT_NOFILE, soft limit
    std::uint64_t memory_bytes = 0;   // of the whole machine
    unsigned cpus = 0;                // that this process may run on
    std::vector<int> numa_nodes;
    Ability io_uring, cachestat;
};
Limits limits();  // under a millisecond

std::uint64_t page_bytes() noexcept;
std::uint64_t memlock_bytes() noexcept;
unsigned allowed_cpus() noexcept;  // that this process may run on

}  // namespace penstock::os
