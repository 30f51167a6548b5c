// The plain way: what a careful program without Penstock does. Each thread calls pread into a page-locked buffer of its
// own, copies that to the device and waits; or, for host memory, calls pread straight into it. Nothing of the engine is
// used, so that ratios to it say what Penstock adds. Its buffers have every advantage that Penstock's staging has.
#pragma once

#include <memory>

#include "os/fd.hpp"
#include "os/memory/arena.hpp"
#include "penstock/context.hpp"

namespace penstock::load {

// Page-locked memory for all threads of a run: aligned, on huge pages, touched, known to the device.
class PlainStaging {
  public:
    // Throws Error{unsupported} when the device refuses to lock it.
    PlainStaging(Device& device, std::uint64_t bytes);
    ~PlainStaging();
    PlainStaging(const PlainStaging&) = delete;
    PlainStaging& operator=(const PlainStaging&) = delete;
    std::byte* data() const noexcept { return arena_.memory().data(); }

  private:
    Device& device_;
    os::Arena arena_;
};

// One thread's file, buffer and stream.
class Plain {
  public:
    struct Options {
        bool writes = false;
        bool direct = true;            // O_DIRECT: offset, bytes and memory must then be aligned
        std::byte* staging = nullptr;  // none: the memory of the request is the host's
    };
    Plain(Device& device, const File& file, const Options& options);
    // Blocking. The evidence names the path `direct` or `buffered`, after how the file was opened.
    Outcome move(Direction direction, const Range& range);

  private:
    std::uint64_t read(const Range& range, std::byte* into, ErrorInfo& error);
    std::uint64_t write(const Range& range, const std::byte* from, ErrorInfo& error);

    Options options_;
    os::UniqueFd fd_;
    std::unique_ptr<Stream> stream_;
};

}  // namespace penstock::load
