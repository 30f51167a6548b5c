// Tests of what a killed writer leaves behind: a System that kills its process in the middle of changing files, and a
// child to run it in.
#pragma once

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "os/system.hpp"

namespace penstock::os {

// Kills its process before call number `calls` (from 0) that changes a file or a name.
class KillingSystem final : public System {
  public:
    explicit KillingSystem(int calls) : left_(calls) {}
    ssize_t pwrite(int fd, const void* memory, std::size_t bytes, std::uint64_t offset) override {
        step();
        return System::pwrite(fd, memory, bytes, offset);
    }
    int fsync(int fd) override { return step(), System::fsync(fd); }
    int fdatasync(int fd) override { return step(), System::fdatasync(fd); }
    int fallocate(int fd, std::uint64_t offset, std::uint64_t bytes) override {
        return step(), System::fallocate(fd, offset, bytes);
    }
    int rename(int folder, const char* from, const char* to, unsigned flags) override {
        return step(), System::rename(folder, from, to, flags);
    }
    int link_fd(int fd, int folder, const char* name) override { return step(), System::link_fd(fd, folder, name); }

  private:
    void step() {
        if (left_-- == 0) ::kill(::getpid(), SIGKILL);
    }
    int left_;
};

// Runs `work` in a child. Returns true if the child ended by itself, false if it was killed.
inline bool child_ends(const std::function<void()>& work, const std::function<void(pid_t)>& meanwhile = {}) {
    const pid_t child = ::fork();
    if (child == 0) {
        work();
        ::_exit(0);
    }
    if (meanwhile) meanwhile(child);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) || WTERMSIG(status) == SIGKILL);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace penstock::os
