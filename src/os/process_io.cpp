// See process_io.hpp. Reads /proc/self/io, getrusage and /sys/dev/block by plain system calls, because iostreams cost
// too much beside a small transfer.
#include "os/process_io.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "os/fd.hpp"

namespace penstock::os {
namespace {

constexpr std::uint64_t kSectorBytes = 512;  // the unit of block statistics, whatever the disk's sector size

using Text = std::array<char, 1024>;

// Reads all of a small /proc or /sys file and ends it with a zero. Returns false if it cannot be read.
bool slurp(const char* name, Text& text) noexcept {
    const UniqueFd fd(::open(name, O_RDONLY | O_CLOEXEC));
    if (!fd) return false;
    const ssize_t count = ::read(fd.get(), text.data(), text.size() - 1);
    if (count <= 0) return false;
    text[static_cast<std::size_t>(count)] = '\0';
    return true;
}

bool field(const Text& text, const char* key, std::uint64_t& value) noexcept {
    const char* found = std::strstr(text.data(), key);
    return found != nullptr && std::sscanf(found + std::strlen(key), "%" SCNu64, &value) == 1;
}

double seconds(const timeval& time) noexcept {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

}  // namespace

std::optional<ProcessIo> process_io() {
    Text text;
    ProcessIo io;
    if (!slurp("/proc/self/io", text)) return std::nullopt;
    // The colon and the newline distinguish "write_bytes" from "cancelled_write_bytes".
    const bool complete = field(text, "rchar:", io.read_chars) && field(text, "\nwchar:", io.write_chars) &&
                          field(text, "\nread_bytes:", io.read_bytes) &&
                          field(text, "\nwrite_bytes:", io.write_bytes) && field(text, "\nsyscr:", io.read_calls) &&
                          field(text, "\nsyscw:", io.write_calls);
    return complete ? std::optional(io) : std::nullopt;
}

ProcessIo difference(const ProcessIo& after, const ProcessIo& before) noexcept {
    return {.read_chars = after.read_chars - before.read_chars,
            .write_chars = after.write_chars - before.write_chars,
            .read_bytes = after.read_bytes - before.read_bytes,
            .write_bytes = after.write_bytes - before.write_bytes,
            .read_calls = after.read_calls - before.read_calls,
            .write_calls = after.write_calls - before.write_calls};
}

CpuTime cpu_time() noexcept {
    rusage usage{};
    if (::getrusage(RUSAGE_SELF, &usage) != 0) return {};
    return {seconds(usage.ru_utime), seconds(usage.ru_stime)};
}

CpuTime difference(const CpuTime& after, const CpuTime& before) noexcept {
    return {after.user_s - before.user_s, after.system_s - before.system_s};
}

std::optional<DiskIo> disk_io(unsigned device_major, unsigned device_minor) {
    if (device_major == 0) return std::nullopt;
    std::array<char, 64> name{};
    std::snprintf(name.data(), name.size(), "/sys/dev/block/%u:%u/stat", device_major, device_minor);
    Text text;
    if (!slurp(name.data(), text)) return std::nullopt;
    std::uint64_t reads = 0, reads_merged = 0, read_sectors = 0, read_ms = 0, writes = 0, writes_merged = 0,
                  sectors = 0;
    const int fields =
        std::sscanf(text.data(), "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
                    &reads, &reads_merged, &read_sectors, &read_ms, &writes, &writes_merged, &sectors);
    if (fields != 7) return std::nullopt;
    return DiskIo{read_sectors * kSectorBytes, sectors * kSectorBytes, reads, writes};
}

DiskIo difference(const DiskIo& after, const DiskIo& before) noexcept {
    return {after.read_bytes - before.read_bytes, after.write_bytes - before.write_bytes,
            after.read_operations - before.read_operations, after.write_operations - before.write_operations};
}

}  // namespace penstock::os
