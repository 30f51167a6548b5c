// See plain.hpp.
#include "vfd/plain.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "vfd/fault.hpp"

namespace penstock::vfd {
namespace {

constexpr std::size_t kMostBytes = 0x7ffff000;  // of one system call on Linux

}  // namespace

Fault system_fault(const char* operation, int error_number, std::uint64_t offset_bytes, std::uint64_t length_bytes) {
    return {operation, std::strerror(error_number), "", error_number, offset_bytes, length_bytes};
}

Fault library_fault(const penstock_error& error) {
    return {error.operation, error.cause, error.advice, error.system_code, error.offset_bytes, error.length_bytes};
}

std::size_t read_plain(int fd, void* memory, std::size_t bytes, std::uint64_t offset_bytes) {
    std::size_t done = 0;
    while (done < bytes) {
        const std::size_t wanted = std::min(bytes - done, kMostBytes);
        const auto at = static_cast<off_t>(offset_bytes + done);
        const ssize_t got = ::pread(fd, static_cast<char*>(memory) + done, wanted, at);
        if (got == 0) break;
        if (got > 0) done += static_cast<std::size_t>(got);
        else if (errno != EINTR) throw system_fault("read", errno, offset_bytes, bytes);
    }
    return done;
}

void read_or_zero(int fd, void* memory, std::size_t bytes, std::uint64_t offset_bytes) {
    const std::size_t got = read_plain(fd, memory, bytes, offset_bytes);
    if (got < bytes) std::memset(static_cast<char*>(memory) + got, 0, bytes - got);
}

void write_plain(int fd, const void* memory, std::size_t bytes, std::uint64_t offset_bytes) {
    std::size_t done = 0;
    while (done < bytes) {
        const std::size_t wanted = std::min(bytes - done, kMostBytes);
        const auto at = static_cast<off_t>(offset_bytes + done);
        const ssize_t put = ::pwrite(fd, static_cast<const char*>(memory) + done, wanted, at);
        if (put > 0) done += static_cast<std::size_t>(put);
        else if (put == 0 || errno != EINTR) throw system_fault("write", put == 0 ? EIO : errno, offset_bytes, bytes);
    }
}

std::uint64_t size_of(int fd) {
    struct stat found{};
    if (::fstat(fd, &found) != 0) throw system_fault("fstat", errno);
    return static_cast<std::uint64_t>(found.st_size);
}

}  // namespace penstock::vfd
