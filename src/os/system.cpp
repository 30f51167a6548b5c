// See system.hpp. Each function makes one call: no retries, no checks, and errno stays as it is.
#include "os/system.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace penstock::os {
namespace {
constexpr long kIoUringRegister = 427;  // the same number on all architectures
}

int System::open(const char* name, int flags, unsigned mode) { return ::open(name, flags | O_CLOEXEC, mode); }

int System::openat(int folder, const char* name, int flags, unsigned mode) {
    return ::openat(folder, name, flags | O_CLOEXEC, mode);
}

int System::close(int fd) { return ::close(fd); }

int System::dup(int fd) { return ::fcntl(fd, F_DUPFD_CLOEXEC, 0); }

ssize_t System::pread(int fd, void* memory, std::size_t bytes, std::uint64_t offset) {
    return ::pread(fd, memory, bytes, static_cast<off_t>(offset));
}

ssize_t System::pread_cached(int fd, void* memory, std::size_t bytes, std::uint64_t offset) {
    const iovec place{memory, bytes};
    return ::preadv2(fd, &place, 1, static_cast<off_t>(offset), RWF_NOWAIT);
}

ssize_t System::pwrite(int fd, const void* memory, std::size_t bytes, std::uint64_t offset) {
    return ::pwrite(fd, memory, bytes, static_cast<off_t>(offset));
}

int System::fdatasync(int fd) { return ::fdatasync(fd); }

int System::fsync(int fd) { return ::fsync(fd); }

int System::sync_file_range(int fd, std::uint64_t offset, std::uint64_t bytes, unsigned flags) {
    return ::sync_file_range(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes), flags);
}

int System::fallocate(int fd, std::uint64_t offset, std::uint64_t bytes) {
    return ::fallocate(fd, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes));
}

int System::ftruncate(int fd, std::uint64_t bytes) { return ::ftruncate(fd, static_cast<off_t>(bytes)); }

// Without flags uses the older call, which every kernel and file system has.
int System::rename(int folder, const char* from, const char* to, unsigned flags) {
    if (flags == 0) return ::renameat(folder, from, folder, to);
    return static_cast<int>(::syscall(SYS_renameat2, folder, from, folder, to, flags));
}

// Goes through /proc, because linkat(AT_EMPTY_PATH) needs CAP_DAC_READ_SEARCH.
int System::link_fd(int fd, int folder, const char* name) {
    const std::string self = "/proc/self/fd/" + std::to_string(fd);
    return ::linkat(AT_FDCWD, self.c_str(), folder, name, AT_SYMLINK_FOLLOW);
}

int System::unlink(int folder, const char* name) { return ::unlinkat(folder, name, 0); }

int System::lock(int fd, int command, struct flock* range) { return ::fcntl(fd, command, range); }

int System::io_uring_register(int ring_fd, unsigned opcode, const void* argument, unsigned count) {
    return static_cast<int>(::syscall(kIoUringRegister, ring_fd, opcode, argument, count));
}

long System::waits_of_thread() noexcept {
    struct rusage usage {};
    return ::getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : 0;
}

System& real_system() noexcept {
    static System system;  // without state, so it may live as long as the process
    return system;
}

}  // namespace penstock::os
