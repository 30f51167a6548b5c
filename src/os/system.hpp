// System: the system calls that move or sync data or register files with a ring, as virtual functions that tests can
// override.
//
// The base class makes the real calls. Tests derive from it to inject EINTR, short counts, EIO and ENOSPC. There is no
// global state: callers get a System as an argument. Functions return what the system call returns and leave its error
// in errno.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace penstock::os {

class System {
  public:
    virtual ~System() = default;
    virtual int open(const char* name, int flags, unsigned mode);
    virtual int openat(int folder, const char* name, int flags, unsigned mode);
    virtual int close(int fd);
    virtual int dup(int fd);
    virtual ssize_t pread(int fd, void* memory, std::size_t bytes, std::uint64_t offset);
    // preadv2(2) with RWF_NOWAIT: EAGAIN where the thread would wait for a disk, EOPNOTSUPP where nothing tells that.
    virtual ssize_t pread_cached(int fd, void* memory, std::size_t bytes, std::uint64_t offset);
    virtual ssize_t pwrite(int fd, const void* memory, std::size_t bytes, std::uint64_t offset);
    virtual int fdatasync(int fd);
    virtual int fsync(int fd);
    virtual int sync_file_range(int fd, std::uint64_t offset, std::uint64_t bytes, unsigned flags);
    virtual int fallocate(int fd, std::uint64_t offset, std::uint64_t bytes);
    virtual int ftruncate(int fd, std::uint64_t bytes);
    // A name in an open folder. `flags` are those of renameat2(2).
    virtual int rename(int folder, const char* from, const char* to, unsigned flags);
    virtual int link_fd(int fd, int folder, const char* name);  // gives an O_TMPFILE file a name
    virtual int unlink(int folder, const char* name);
    // fcntl(2) with F_OFD_SETLK or F_OFD_GETLK.
    virtual int lock(int fd, int command, struct flock* range);
    virtual int io_uring_register(int ring_fd, unsigned opcode, const void* argument, unsigned count);
    // How often the calling thread has given its core up to wait for something, since it began.
    virtual long waits_of_thread() noexcept;
};

// The real calls, without state and shared by all.
System& real_system() noexcept;

}  // namespace penstock::os
