// A system with bad days, for tests: calls of it are interrupted, short or slow, fail, or find the disk full.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "os/system.hpp"

namespace penstock::ondevice {

class BadDays : public os::System {
  public:
    // Each n-th call does so; 0: none.
    std::atomic<unsigned> interrupts{0}, shortens{0}, delays{0}, fails_read{0}, fails_write{0}, fails_sync{0};
    std::atomic<bool> full{false};
    std::atomic<bool> full_at_times{false};  // 32 calls of every 64
    std::atomic<unsigned> injected{0};
    std::atomic<int> only_fd{-1};  // the bad descriptor; -1: all are bad

    void good() {
        interrupts = shortens = delays = fails_read = fails_write = fails_sync = 0;
        full = full_at_times = false;
    }
    ssize_t pread(int fd, void* memory, std::size_t bytes, std::uint64_t offset) override {
        const unsigned call = ++calls_;
        if (spared(fd)) return System::pread(fd, memory, bytes, offset);
        if (nth(fails_read, call)) return errno = EIO, -1;
        if (nth(interrupts, call)) return errno = EINTR, -1;
        wait(call);
        return System::pread(fd, memory, nth(shortens, call) ? bytes / 2 + 1 : bytes, offset);
    }
    ssize_t pwrite(int fd, const void* memory, std::size_t bytes, std::uint64_t offset) override {
        const unsigned call = ++calls_;
        if (spared(fd)) return System::pwrite(fd, memory, bytes, offset);
        if (full || (full_at_times && call % 64 < 32)) return ++injected, errno = ENOSPC, -1;
        if (nth(fails_write, call)) return errno = EIO, -1;
        if (nth(interrupts, call)) return errno = EINTR, -1;
        wait(call);
        return System::pwrite(fd, memory, nth(shortens, call) ? bytes / 2 + 1 : bytes, offset);
    }
    int fdatasync(int fd) override {
        const unsigned call = ++calls_;
        if (spared(fd)) return System::fdatasync(fd);
        if (nth(fails_sync, call)) return errno = EIO, -1;
        if (nth(interrupts, call)) return errno = EINTR, -1;
        return System::fdatasync(fd);
    }

  private:
    bool spared(int fd) const { return only_fd != -1 && only_fd != fd; }
    bool nth(unsigned each, unsigned call) { return each != 0 && call % each == 0 && ++injected != 0; }
    void wait(unsigned call) {
        if (nth(delays, call)) ::usleep(300);
    }
    std::atomic<unsigned> calls_{0};
};

}  // namespace penstock::ondevice
