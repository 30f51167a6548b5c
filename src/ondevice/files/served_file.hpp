// What the service threads know of a file: its size, a mapping of it, and how much of it is in the page cache.
//
// A thread copies cached bytes from the mapping, under a guard against a file that is cut short. All else goes by
// descriptors. How much is cached changes, so a thread that reads asks the system again now and then.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "os/memory/fault_guard.hpp"
#include "penstock/ondevice/request.hpp"
#include "path/path.hpp"

namespace penstock::ondevice {

class ServedFile {
  public:
    // Requires: the handle outlives this. Throws Error if the system does not tell the size. A file that cannot be
    // mapped is served by descriptors.
    explicit ServedFile(const FileHandle& handle);
    ~ServedFile();
    ServedFile(const ServedFile&) = delete;
    ServedFile& operator=(const ServedFile&) = delete;

    const FileHandle& handle() const noexcept { return handle_; }
    std::uint64_t size_bytes() const noexcept { return size_; }

    // How many bytes the file has now; 0 if the system does not say.
    std::uint64_t bytes_now() const noexcept;

    // What is wrong with a request, if anything: out_of_range, read_only, invalid.
    Status check(const Request& request) const noexcept;
    // Whether reads of this range are best copied from the mapping now, at `now_ns` of Native's clock.
    bool cached(std::uint64_t offset_bytes, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
    // Whether copies from mappings survive a fault; others may have taken the signal.
    bool guarded() const noexcept { return guard_.usable(); }
    const os::FaultGuard& guard() const noexcept { return guard_; }
    // The first error (errno) of a sync of this file; 0: every sync succeeded. The error stays: Linux reports lost
    // bytes once, and later syncs say nothing of them.
    int lost() const noexcept { return lost_.load(std::memory_order_relaxed); }
    void lose(int system_code) noexcept { lost_.store(system_code, std::memory_order_relaxed); }

    // Bytes for a copy under the guard. If the copy faults, the file was cut short. If the file was cut inside a page
    // of the system's, the mapping has zeros behind its end: a copy that ends in a zero counts if the file still covers
    // it.
    const std::byte* at(std::uint64_t offset_bytes) const noexcept { return mapping_.data() + offset_bytes; }

  private:
    enum class Cached : std::uint32_t { none, some, all };
    Cached how_much(std::uint64_t now_ns) noexcept;

    const FileHandle& handle_;
    const std::uint64_t size_;
    os::FaultGuard guard_;
    std::span<std::byte> mapping_;  // up to the end of the last page
    std::atomic<int> lost_{0};
    std::atomic<Cached> cached_{Cached::some};
    std::atomic<std::uint64_t> asked_ns_{0};  // when a thread last asked; the thread that moves it on asks
};

}  // namespace penstock::ondevice
