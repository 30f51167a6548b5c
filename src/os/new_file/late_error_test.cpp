// Errors of writes that failed after they were accepted: each way of asking tells them, once.
#include "os/new_file/late_error.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "context/test_files.hpp"
#include "os/fd.hpp"
#include "os/system.hpp"

namespace penstock::os {
namespace {

using test::TempDirectory;

// Tells what it is asked in which order, and fails one of it.
class AskedSystem : public System {
  public:
    int dup(int fd) override {
        if (no_second == 0) return second_ = System::dup(fd);
        errno = no_second;
        return -1;
    }
    int close(int fd) override {
        const int result = System::close(fd);
        return fd == second_ ? note("flush", result) : result;
    }
    int sync_file_range(int fd, std::uint64_t offset, std::uint64_t bytes, unsigned flags) override {
        asked_flags = flags;
        return note("ask", System::sync_file_range(fd, offset, bytes, flags));
    }
    int fdatasync(int fd) override { return note("fdatasync", System::fdatasync(fd)); }
    std::vector<std::string> done;
    std::string fails;
    int number = EIO;
    unsigned asked_flags = 0;  // those of the last sync_file_range
    int no_second = 0;         // why no second descriptor can be made

  private:
    int note(const std::string& what, int result) {
        done.push_back(what);
        if (what != fails) return result;
        fails.clear();
        errno = number;
        return -1;
    }
    int second_ = -1;
};

// Two descriptors ask: the second one gets the error too, unlike with the flags that a flush clears.
TEST(LateError, is_told_by_the_flush_or_by_the_question) {
    const TempDirectory directory;
    AskedSystem system;
    const UniqueFd fd(::open(directory.file("data").c_str(), O_CREAT | O_RDWR, 0600));
    EXPECT_EQ(late_error(system, fd.get(), true), 0);
    for (const char* step : {"flush", "ask"}) {
        for (const bool local : {true, false}) {
            system.fails = step;
            EXPECT_EQ(late_error(system, fd.get(), local), EIO) << step;
        }
    }
    system.fails = "ask";
    system.number = ENOSYS;  // as in a sandbox
    system.done.clear();
    EXPECT_EQ(late_error(system, fd.get(), true), 0);
    EXPECT_EQ(system.done, (std::vector<std::string>{"flush", "ask", "fdatasync"}));
}

// Writes of a process without a free descriptor are not lost. Where the disk is elsewhere, a write-back tells.
TEST(LateError, is_none_where_no_descriptor_is_left_to_ask_by) {
    const TempDirectory directory;
    AskedSystem system;
    const UniqueFd fd(::open(directory.file("data").c_str(), O_CREAT | O_RDWR, 0600));
    for (const int number : {EMFILE, ENFILE}) {
        system.no_second = number;
        system.done.clear();
        EXPECT_EQ(late_error(system, fd.get(), true), 0);
        EXPECT_EQ(system.done, (std::vector<std::string>{"ask"}));
        system.done.clear();
        EXPECT_EQ(late_error(system, fd.get(), false), 0);
        EXPECT_EQ(system.done, (std::vector<std::string>{"fdatasync", "ask"}));
        system.fails = "fdatasync";
        EXPECT_EQ(late_error(system, fd.get(), false), EIO);
    }
    system.no_second = EBADF;
    EXPECT_EQ(late_error(system, fd.get(), true), EBADF);
}

// Also clears the rest of the first error. On a network file system, writes all pages and waits.
TEST(LateError, is_asked_for_again_and_of_all_bytes_where_the_disk_is_elsewhere) {
    const TempDirectory directory;
    AskedSystem system;
    const UniqueFd fd(::open(directory.file("data").c_str(), O_CREAT | O_RDWR, 0600));
    system.fails = "flush";
    EXPECT_EQ(late_error(system, fd.get(), true), EIO);
    EXPECT_EQ(system.done, (std::vector<std::string>{"flush", "flush", "ask"}));
    EXPECT_EQ(system.asked_flags, static_cast<unsigned>(SYNC_FILE_RANGE_WAIT_BEFORE));
    EXPECT_EQ(late_error(system, fd.get(), false), 0);
    EXPECT_NE(system.asked_flags & SYNC_FILE_RANGE_WRITE, 0u);
    EXPECT_NE(system.asked_flags & SYNC_FILE_RANGE_WAIT_AFTER, 0u);
}

}  // namespace
}  // namespace penstock::os
