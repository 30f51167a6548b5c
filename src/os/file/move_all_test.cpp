// A system that moves little at a time, interrupts, or never gives in: all bytes move, or an errno says why not.
#include "os/file/move_all.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace penstock::os {
namespace {

// A file in memory, behind calls that fail as they are told.
class BadDay final : public System {
  public:
    explicit BadDay(std::size_t bytes) : contents(bytes) {
        for (std::size_t i = 0; i < bytes; ++i) contents[i] = static_cast<std::byte>(i * 7 + 1);
    }
    ssize_t pread(int, void* memory, std::size_t bytes, std::uint64_t offset) override {
        return move(bytes, offset, [&](std::size_t count) { std::memcpy(memory, &contents[offset], count); });
    }
    ssize_t pwrite(int, const void* memory, std::size_t bytes, std::uint64_t offset) override {
        return move(bytes, offset, [&](std::size_t count) { std::memcpy(&contents[offset], memory, count); });
    }

    std::vector<std::byte> contents;
    std::size_t most = SIZE_MAX;  // bytes of one call
    int failure = 0;              // the errno of every second call, or of all
    bool always = false;
    std::uint32_t calls = 0;

  private:
    template <typename Copy>
    ssize_t move(std::size_t bytes, std::uint64_t offset, const Copy& copy) {
        if (++calls % 2 == 1 || always) {
            if (failure != 0) return errno = failure, -1;
        }
        if (offset >= contents.size()) return 0;
        const std::size_t count = std::min({bytes, most, contents.size() - static_cast<std::size_t>(offset)});
        if (count != 0) copy(count);
        return static_cast<ssize_t>(count);
    }
};

TEST(MoveAll, goes_on_after_short_counts_and_interruptions) {
    for (const int failure : {0, EINTR, EAGAIN}) {
        BadDay system(1000);
        system.most = 30;
        system.failure = failure;
        std::vector<std::byte> memory(900);
        const FileMove read{.fd = 3, .memory = memory.data(), .bytes = memory.size(), .offset_bytes = 100};
        const FileMoved got = move_all(system, read);
        EXPECT_EQ(got.bytes, 900u);
        EXPECT_EQ(got.error_number, 0);
        EXPECT_EQ(got.calls, system.calls);
        EXPECT_EQ(got.calls, failure == 0 ? 30u : 60u);
        EXPECT_TRUE(std::equal(memory.begin(), memory.end(), system.contents.begin() + 100));
        std::fill(memory.begin(), memory.end(), std::byte{0x55});
        FileMove write = read;
        write.direction = Direction::write;
        EXPECT_EQ(move_all(system, write).bytes, 900u);
        EXPECT_TRUE(std::equal(memory.begin(), memory.end(), system.contents.begin() + 100));
    }
}

TEST(MoveAll, gives_up_only_on_interruptions_between_which_nothing_moves) {
    BadDay system(1000);
    system.most = 1;
    system.failure = EINTR;
    std::vector<std::byte> memory(500);
    const FileMoved moved = move_all(system, {.fd = 3, .memory = memory.data(), .bytes = 500, .offset_bytes = 0});
    EXPECT_EQ(moved.error_number, 0);
    EXPECT_EQ(moved.bytes, 500u);
}

TEST(MoveAll, a_read_over_the_end_is_short_and_no_error) {
    BadDay system(1000);
    std::vector<std::byte> memory(512);
    FileMove read{.fd = 3, .memory = memory.data(), .bytes = 512, .offset_bytes = 900};
    EXPECT_EQ(move_all(system, read).bytes, 100u);
    EXPECT_EQ(system.calls, 2u);  // the second call says that the file ended
    read.block_bytes = 512;       // a part of a block says so by itself: O_DIRECT refuses to go on from there
    const FileMoved moved = move_all(system, read);
    EXPECT_EQ(moved.bytes, 100u);
    EXPECT_EQ(moved.calls, 1u);
    EXPECT_EQ(moved.error_number, 0);
}

TEST(MoveAll, a_write_that_moves_nothing_is_an_error) {
    BadDay system(1000);
    system.most = 0;
    std::vector<std::byte> memory(10);
    const FileMoved moved = move_all(
        system, {.direction = Direction::write, .fd = 3, .memory = memory.data(), .bytes = 10, .offset_bytes = 0});
    EXPECT_EQ(moved.bytes, 0u);
    EXPECT_EQ(moved.error_number, EIO);
}

TEST(MoveAll, gives_up_on_what_is_interrupted_for_ever_and_at_once_on_other_errors) {
    for (const int failure : {EINTR, EAGAIN, EIO}) {
        BadDay system(1000);
        system.failure = failure;
        system.always = true;
        std::vector<std::byte> memory(10);
        const FileMoved moved = move_all(system, {.fd = 3, .memory = memory.data(), .bytes = 10, .offset_bytes = 0});
        EXPECT_EQ(moved.error_number, failure);
        EXPECT_EQ(moved.calls, failure == EIO ? 1u : 201u);
    }
}

}  // namespace
}  // namespace penstock::os
