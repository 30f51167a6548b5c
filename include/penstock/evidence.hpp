// Evidence: what is known, and how, of the way the bytes of one transfer really took.
//
// Counted, not inferred: bytes per path are summed from completions; residency, process I/O counters and cuFile
// counters are read from the system before and after. A counter that was not read is marked so; zero means measured
// zero.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "penstock/types.hpp"

namespace penstock {

struct PathShare {
    PathKind path = PathKind::null;
    std::uint64_t bytes = 0;
    std::uint64_t operations = 0;      // storage operations submitted, retries included
    std::uint64_t host_copies_bytes = 0;  // bytes a CPU or the device's copy engine moved through staging memory
    bool from_pinned_mapping = false;  // mmap: the device read the registered mapping, no host copy
    // direct, aio, uring: whether the bytes went past the page cache; absent where it cannot be known, or only cuFile's
    // counters tell. False of paths through the page cache.
    std::optional<bool> past_page_cache{};
};

// How much of the ranges was in the page cache. Large ranges are sampled: `sampled_pages` of `pages` were asked.
struct Residency {
    std::uint64_t pages = 0;
    std::uint64_t sampled_pages = 0;
    std::uint64_t resident_pages = 0;  // of the sampled
    std::optional<std::uint64_t> dirty_pages{};  // of the sampled; only cachestat tells
    std::string source;                // "cachestat", "mincore" or "hugetlbfs"
    double fraction() const noexcept {
        return sampled_pages == 0 ? 0.0 : static_cast<double>(resident_pages) / static_cast<double>(sampled_pages);
    }
};

// Differences of /proc/self/io over the transfer: of the whole process, so other work in it is counted too.
struct ProcessIo {
    std::uint64_t read_chars = 0;   // rchar: bytes asked of read-like calls
    std::uint64_t write_chars = 0;
    std::uint64_t read_bytes = 0;   // fetched from the storage layer
    std::uint64_t write_bytes = 0;  // sent to it, or dirtied for it
    std::uint64_t read_calls = 0;
    std::uint64_t write_calls = 0;
};

// cuFile's own counters over the transfer (level 3), summed over GPUs.
struct CuFileCounters {
    std::uint64_t nvfs_reads = 0, nvfs_writes = 0;    // through nvidia-fs
    std::uint64_t p2p_reads = 0, p2p_writes = 0;      // PCI peer to peer
    std::uint64_t posix_reads = 0, posix_writes = 0;  // compatibility mode
    std::string library;                              // "libcufile 1.15"
};

struct Fallback {
    PathKind wanted = PathKind::automatic;
    PathKind took = PathKind::automatic;
    std::uint64_t bytes = 0;
    std::string cause;
};

struct Evidence {
    std::vector<PathShare> paths;  // sorted by bytes, largest first; sums to the bytes moved
    std::optional<Residency> before;
    std::optional<Residency> after;
    std::optional<ProcessIo> process_io;
    std::optional<CuFileCounters> cufile;
    std::vector<Fallback> fallbacks;
    std::vector<std::string> notes;    // e.g. "registered buffers: memlock limit 64 KiB"
    std::uint64_t pinned_peak_bytes = 0;  // staging memory in use at most, of the whole context
    double cpu_user_s = 0;             // of the process, over the transfer
    double cpu_system_s = 0;
    std::string plan;                  // Plan::describe()
    std::string why;                   // Plan::reason()
    double predicted_seconds = 0;      // by the machine profile; 0: there is none for this request
    double seconds = 0;                // as Outcome's

    // The path that moved all bytes, or "mixed"; "none" when nothing moved.
    std::string path_name() const;
    // Why the bytes went this way, in one sentence with the predicted and the measured rate.
    std::string reason() const;
    // One JSON object, keys in snake case.
    std::string to_json() const;
};

}  // namespace penstock
