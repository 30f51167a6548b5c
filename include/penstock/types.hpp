// The small vocabulary every layer shares: directions, memory kinds, path names, byte units, deadlines.
//
// Plain values only: no operating system, no CUDA. The strings are what users type and read, so they are stable.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace penstock {

inline constexpr std::uint64_t kKiB = 1024;
inline constexpr std::uint64_t kMiB = 1024 * kKiB;
inline constexpr std::uint64_t kGiB = 1024 * kMiB;

enum class Direction : std::uint8_t { read, write };  // read: file -> memory
enum class MemoryKind : std::uint8_t { device, pinned, managed, system };
enum class FirstTouch : std::uint8_t { none, cpu, gpu };

// Every way of moving bytes. `automatic` is a request, never an answer: evidence always names one of the others.
enum class PathKind : std::uint8_t {
    automatic,
    null,           // moves nothing: the ceiling of everything above it
    memory,         // a file held in memory: tests
    buffered,       // pread/pwrite through the page cache (HDF5 calls it SEC2)
    direct,         // pread/pwrite with O_DIRECT
    aio,            // Linux native AIO (libaio) with O_DIRECT
    uring,          // io_uring with O_DIRECT
    uring_buffered, // io_uring through the page cache
    mmap,           // the file's mapping; device-registered mappings need no host copy
    gds,            // cuFile, native only: fails where cuFile would use its compatibility mode
    gds_compat,     // cuFile in compatibility mode
    gds_batch,      // cuFile batch calls, whichever mode cuFile is in
    gds_stream,     // cuFile stream calls, whichever mode cuFile is in
};
inline constexpr std::size_t kPathKinds = 13;

const char* to_string(Direction value) noexcept;
const char* to_string(MemoryKind value) noexcept;
const char* to_string(FirstTouch value) noexcept;
const char* to_string(PathKind value) noexcept;  // "auto", "uring-buffered", "gds-compat", ...

std::optional<PathKind> path_from_string(std::string_view name) noexcept;
std::optional<MemoryKind> memory_kind_from_string(std::string_view name) noexcept;
std::optional<FirstTouch> first_touch_from_string(std::string_view name) noexcept;
std::string known_path_names();  // "auto, buffered, direct, ..." for messages

// "64KiB", "4 MiB", "1e9", "16G" (binary), "1.5GB" (decimal). Throws Error{invalid_argument} naming the text.
std::uint64_t parse_bytes(std::string_view text);

constexpr std::uint64_t align_down(std::uint64_t value, std::uint64_t step) noexcept { return value - value % step; }
constexpr std::uint64_t align_up(std::uint64_t value, std::uint64_t step) noexcept {
    return value % step == 0 ? value : value + (step - value % step);
}

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point began) noexcept {
    return std::chrono::duration<double>(Clock::now() - began).count();
}

// A point in time by which a wait must end. Never infinite by accident: `never()` is spelled out.
class Deadline {
  public:
    static Deadline never() noexcept { return Deadline{Clock::time_point::max()}; }
    static Deadline now() noexcept { return Deadline{Clock::time_point::min()}; }
    static Deadline after(Clock::duration wait) noexcept;  // saturates to never()
    static Deadline at(Clock::time_point when) noexcept { return Deadline{when}; }

    bool is_never() const noexcept { return when_ == Clock::time_point::max(); }
    bool passed() const noexcept { return !is_never() && Clock::now() >= when_; }
    Clock::time_point when() const noexcept { return when_; }
    // Time left, at least zero; never() answers about 100 years, so that it can go into a timespec.
    std::chrono::nanoseconds left() const noexcept;

  private:
    explicit Deadline(Clock::time_point when) noexcept : when_(when) {}
    Clock::time_point when_;
};

}  // namespace penstock
