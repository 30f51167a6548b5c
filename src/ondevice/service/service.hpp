// The service: host threads that do what device code asks for through a mailbox, or NVMe queues, on ordinary files.
//
// Each thread has a range of the mailbox's slots, or of the queues, to itself. Reads of cached ranges are copied from a
// mapping, other aligned ones go past the page cache with as many under way as there are slots, the rest by pread and
// pwrite. A request is completed exactly once, also when the file is cut short, the disk fails or the service ends.
// Threads spin while there is work and for a moment after it, then sleep ever longer.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ondevice/files/served_arrays.hpp"
#include "ondevice/mailbox_memory.hpp"
#include "ondevice/nvme/nvme_queues.hpp"
#include "os/system.hpp"

namespace penstock::ondevice {

// How a request was served, as evidence tells it.
enum class Source : std::uint8_t { mapping, buffered, direct };
inline constexpr std::size_t kSources = 3;
const char* to_string(Source source) noexcept;

struct Served {
    std::uint64_t requests = 0;
    std::uint64_t bytes = 0;
};

// Of one file. Flushes of an array are one request to each of its files.
struct FileEvidence {
    std::array<Served, kSources> by_source;
    std::uint64_t failed = 0;
};

struct ServiceEvidence {
    std::array<Served, kSources> by_source;  // of all files
    std::uint64_t failed = 0;                // what was asked of no file at all included
    std::vector<FileEvidence> files;         // of all arrays, those of array 0 first
    // "uring" (and why the kernel has not registered the slots), or "direct" and why; empty: not used
    std::string direct_by;
};

struct ServiceOptions {
    std::uint32_t threads = 4;
    std::uint32_t spin_us = 200;   // without work, before it sleeps
    // Between looks, at most, while it had work a moment ago; later a 64th of the time without, up to 2 ms. That long
    // a request may wait.
    std::uint32_t sleep_us = 100;
    bool mappings = true;          // false: cached ranges by pread too
    bool direct = true;            // false: nothing goes past the page cache
    os::System* system = nullptr;  // nullptr: the real one
};

class ServiceWorker;

class Service {
  public:
    // What requests call file n is arrays[n]. Mailbox and handles outlive the service. Throws Error for no threads,
    // more than slots, no files, or files that do not fit together.
    Service(Mailbox& mailbox, const std::vector<FileSet>& arrays, const ServiceOptions& options);
    // The same of NVMe queues, which know one array, the first. No more threads than queues.
    Service(NvmeQueues& queues, const std::vector<FileSet>& arrays, const ServiceOptions& options);
    // Completes what was taken, then what still lies in the mailbox as cancelled.
    ~Service();
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;

    ServiceEvidence evidence() const;
    // Where the storage failed; see ServedArrays.
    u64 failures() const { return arrays_.failures(); }
    std::vector<ServedFailure> failures_since(u64 before) const { return arrays_.failures_since(before); }
    // Whether a file of the array is shorter than it was, which who uses a mapping of it is not told by the storage.
    std::optional<ServedFailure> cut_short(u32 array) const noexcept { return arrays_.cut_short(array); }

  private:
    // What is shared out among the threads.
    struct Parts {
        u32 count;
        const char* what;
    };
    template <class Inbox>
    void employ(const Parts& parts, const ServiceOptions& options, const Inbox& inbox);
    void start();

    ServedArrays arrays_;
    std::vector<std::unique_ptr<ServiceWorker>> workers_;
    std::atomic<bool> stop_{false};
    std::vector<std::thread> threads_;
};

}  // namespace penstock::ondevice
