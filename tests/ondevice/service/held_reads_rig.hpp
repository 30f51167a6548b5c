// For tests of what goes on while the disk reads: a system whose reads wait until the test lets them go, or fail, and
// files of which nothing is in memory, so that there is something to read.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>

#include "os/fd.hpp"
#include "os/file/residency.hpp"
#include "os/system.hpp"

namespace penstock::ondevice {

// There is no O_DIRECT, so all reads come by pread.
class HeldReads : public os::System {
  public:
    std::atomic<bool> held{false}, failing{false};
    std::atomic<int> waiting{0};
    int open(const char* name, int flags, unsigned mode) override {
        return (flags & O_DIRECT) != 0 ? (errno = EINVAL, -1) : System::open(name, flags, mode);
    }
    ssize_t pread(int fd, void* memory, std::size_t bytes, std::uint64_t offset) override {
        ++waiting;
        held.wait(true);
        --waiting;
        if (failing) return errno = EIO, -1;
        return System::pread(fd, memory, bytes, offset);
    }
    void let_go() {
        held = false;
        held.notify_all();
    }
};

// Drops the file from the system's cache. False: its file system keeps files in memory.
inline bool made_cold(const std::string& name) {
    const os::UniqueFd fd(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
    os::drop_cache(os::real_system(), fd.get(), name);
    return os::residency(fd.get(), 0, static_cast<std::uint64_t>(::lseek(fd.get(), 0, SEEK_END))).resident_pages == 0;
}

}  // namespace penstock::ondevice
