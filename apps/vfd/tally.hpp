// What an open file moved, and which way: the evidence that is told when it is closed.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>

namespace penstock::vfd {

// Requests of one kind. Counted by any thread.
struct Count {
    std::atomic<std::uint64_t> requests{0};
    std::atomic<std::uint64_t> bytes{0};
    void add(std::uint64_t more_bytes) noexcept {
        requests.fetch_add(1, std::memory_order_relaxed);
        bytes.fetch_add(more_bytes, std::memory_order_relaxed);
    }
};

// Of one direction.
struct Moved {
    Count plain;    // system calls between the file and memory of the caller
    Count staged;   // through pinned memory, to or from a device
    Count windows;  // pieces that lie near each other, moved together
    std::atomic<std::uint64_t> pieces{0};  // in windows
    Count rows;     // between HDF5's chunk cache and a device, each by a copy of its own
    struct Share {
        std::uint64_t requests = 0, bytes = 0;
    };
    std::map<std::string, Share> transfers;  // by the path that Penstock took; guarded by the mutex of its Tally
};

class Tally {
  public:
    Moved& moved(bool write) noexcept { return write ? writes_ : reads_; }
    void transfer(bool write, const std::string& path, std::uint64_t bytes, std::uint32_t fallbacks);
    // A transfer was wanted and could not be made; plain system calls moved the bytes.
    void refused(const std::string& why);
    std::string json(const std::string& file) const;

  private:
    Moved reads_, writes_;
    mutable std::mutex mutex_;  // guards what follows, and Moved::transfers
    std::uint64_t fallbacks_ = 0;
    std::set<std::string> refusals_;
};

}  // namespace penstock::vfd
