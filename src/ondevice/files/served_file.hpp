// ServedFile: a file as the service threads see it: its size, a mapping of it, and how much of it is in the page cache.
//
// A read of what is cached is a copy from the mapping, guarded against a file that is cut short; all else goes by
// descriptors. How much is cached changes, and is asked again now and then by whoever reads.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "os/memory/fault_guard.hpp"
#include "penstock/ondevice/request.hpp"
#include "penstock/path.hpp"

namespace penstock::ondevice {

class ServedFile {
  public:
    // The handle must outlive this. Throws Error when the size cannot be asked; a file that cannot be mapped is served
    // without.
    explicit ServedFile(const FileHandle& handle);
    ~ServedFile();
    ServedFile(const ServedFile&) = delete;
    ServedFile& operator=(const ServedFile&) = delete;

    const FileHandle& handle() const noexcept { return handle_; }
    std::uint64_t size_bytes() const noexcept { return size_; }

    // How many bytes it has now; 0 if the system does not say.
    std::uint64_t bytes_now() const noexcept;

    // What is wrong with a request, if anything: out_of_range, read_only, invalid.
    Status check(const Request& request) const noexcept;
    // Whether reads of this range are best copied from the mapping now, at `now_ns` of Native's clock.
    bool cached(std::uint64_t offset_bytes, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
    // Whether copies from mappings survive a fault; others may have taken the signal.
    bool guarded() const noexcept { return guard_.usable(); }
    const os::FaultGuard& guard() const noexcept { return guard_; }
    // Why a sync of it failed, ever; 0: none did. The system tells of lost bytes once, whoever asks first; a sync after
    // that says nothing of them.
    int lost() const noexcept { return lost_.load(std::memory_order_relaxed); }
    void lose(int system_code) noexcept { lost_.store(system_code, std::memory_order_relaxed); }

    // To be copied under the guard; a copy that faults: the file was cut short underneath. Cut within a page of the
    // system's, it has zeros behind its end in the mapping: a copy that ends in one counts if the file still covers it.
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
    std::atomic<std::uint64_t> asked_ns_{0};  // when cached_ was asked for last; whoever moves it on asks
};

}  // namespace penstock::ondevice
