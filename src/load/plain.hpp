// The plain way: what a careful program does without Penstock. Each thread calls pread into its own page-locked buffer,
// copies that to the device and waits. For host memory it calls pread into that memory. It uses nothing of the engine,
// so ratios to it show what Penstock adds. Its buffers are as good as Penstock's staging memory.
#pragma once

#include <memory>

#include "os/fd.hpp"
#include "os/memory/arena.hpp"
#include "penstock/context.hpp"

namespace penstock::load {

// Page-locked memory for all threads of a run: aligned, on huge pages, already touched, registered with the device.
class PlainStaging {
  public:
    // Throws Error{unsupported} if the device refuses to lock the memory.
    PlainStaging(Device& device, std::uint64_t bytes);
    ~PlainStaging();
    PlainStaging(const PlainStaging&) = delete;
    PlainStaging& operator=(const PlainStaging&) = delete;
    std::byte* data() const noexcept { return arena_.memory().data(); }

  private:
    Device& device_;
    os::Arena arena_;
};

// The file, buffer and stream of one thread.
class Plain {
  public:
    struct Settings {
        bool writes = false;
        bool direct = true;            // O_DIRECT: offset, bytes and memory must be aligned
        std::byte* staging = nullptr;  // nullptr: the memory of the requests is host memory
    };
    Plain(Device& device, const File& file, const Settings& options);
    // Blocks. The evidence names the path `direct` or `buffered`, depending on how the file was opened.
    Outcome move(Direction direction, const Range& range);

  private:
    std::uint64_t move_all(Direction direction, const Range& range, std::byte* host, ErrorInfo& error) const;

    Settings options_;
    os::UniqueFd fd_;
    std::unique_ptr<Stream> stream_;
};

}  // namespace penstock::load
