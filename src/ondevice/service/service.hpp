// The service: host threads that do what device code asks for through a mailbox, or through NVMe queues, on ordinary
// files.
//
// Each thread has a range of the mailbox's slots, or of the queues, to itself. It copies cached ranges from a mapping,
// reads other aligned ranges past the page cache, as many at a time as there are slots, and does the rest by pread and
// pwrite. It answers each request exactly once, even if the file is cut short, the disk fails or the service ends. A
// thread spins while there is work and for a moment after it, and then sleeps ever longer.
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

// How a thread served a request; evidence counts by it.
enum class Source : std::uint8_t { mapping, buffered, direct };
inline constexpr std::size_t kSources = 3;
const char* to_string(Source source) noexcept;

struct ServedCount {
    std::uint64_t requests = 0;
    std::uint64_t bytes = 0;
};

// What one file was asked for. A flush of an array counts as one request to each of its files.
struct FileEvidence {
    std::array<ServedCount, kSources> by_source;
    std::uint64_t failed = 0;
};

struct ServiceEvidence {
    std::array<ServedCount, kSources> by_source;  // for all files together
    std::uint64_t failed = 0;                // requests that failed, those for no file at all included
    std::vector<FileEvidence> files;         // all arrays' files, those of array 0 first
    // "uring" (and why the kernel has not registered the slots), or "direct" and why; empty: not used
    std::string direct_by;
};

struct ServiceOptions {
    std::uint32_t threads = 4;
    std::uint32_t spin_us = 200;   // how long a thread spins without work before it sleeps
    // The longest sleep between looks while the thread had work a moment ago. Later it sleeps a 64th of the time
    // without work, up to 2 ms. A request may wait as long.
    std::uint32_t sleep_us = 100;
    bool mappings = true;          // false: cached ranges by pread too
    bool direct = true;            // false: nothing goes past the page cache
    os::System* system = nullptr;  // nullptr: the real one
};

class ServiceWorker;

class Service {
  public:
    // A request's file n is arrays[n]. Requires: mailbox and handles outlive the service. Throws Error for no threads,
    // more threads than slots, no files, or files that do not fit together.
    Service(Mailbox& mailbox, const std::vector<FileSet>& arrays, const ServiceOptions& options);
    // Serves NVMe queues, which know one array, the first. Throws Error also for more threads than queues.
    Service(NvmeQueues& queues, const std::vector<FileSet>& arrays, const ServiceOptions& options);
    // Completes the requests that threads have taken, and then answers those left in the mailbox as cancelled.
    ~Service();
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;

    ServiceEvidence evidence() const;
    // How often the storage failed, and where; see ServedArrays.
    u64 failures() const { return arrays_.failures(); }
    std::vector<ServedFailure> failures_since(u64 before) const { return arrays_.failures_since(before); }
    // Whether a file of the array is shorter than it was. The storage does not tell this to a kernel that uses a
    // mapping.
    std::optional<ServedFailure> cut_short(u32 array) const noexcept { return arrays_.cut_short(array); }

  private:
    // What the threads get a share each of.
    struct Shares {
        u32 count;
        const char* what;
    };
    template <class Inbox>
    void employ(const Shares& shares, const ServiceOptions& options, const Inbox& inbox);
    void start();

    ServedArrays arrays_;
    std::vector<std::unique_ptr<ServiceWorker>> workers_;
    std::atomic<bool> stop_{false};
    std::vector<std::thread> threads_;
};

}  // namespace penstock::ondevice
