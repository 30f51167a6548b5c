// Tests of what is asked of Linux, on files of the disk and in memory.
#include "preload/ask/kernel.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

namespace preload::kernel {
namespace {

class KernelTest : public testing::Test {
protected:
    KernelTest() : name_(std::filesystem::temp_directory_path() / ("kernel." + std::to_string(::getpid()))) {
        number_ = ::open(name_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        const std::vector<char> bytes(1 << 20, 'x');
        EXPECT_EQ(::write(number_, bytes.data(), bytes.size()), 1 << 20);
    }
    ~KernelTest() override {
        ::close(number_);
        std::filesystem::remove(name_);
    }

    std::string name_;
    int number_ = -1;
};

TEST_F(KernelTest, facts_and_places_are_those_of_the_descriptor) {
    FileFacts facts;
    ASSERT_TRUE(stat(number_, facts));
    EXPECT_TRUE(facts.regular);
    EXPECT_EQ(facts.bytes, 1 << 20);
    EXPECT_EQ(position(number_), 1 << 20);
    EXPECT_EQ(advance(number_, 17), 1 << 20);  // behind the end, as a call that then moves nothing
    EXPECT_EQ(advance(number_, -20), (1 << 20) + 17);
    EXPECT_EQ(::lseek(number_, 0, SEEK_CUR), (1 << 20) - 3);
    EXPECT_LT(advance(number_, -(2 << 20)), 0);
    EXPECT_EQ(position(number_), (1 << 20) - 3);
}

TEST_F(KernelTest, what_was_just_written_is_cached) {
    const int cached = is_cached(number_, {0, 1 << 20});
    EXPECT_TRUE(cached == 1 || cached == -1) << cached;  // -1: an old kernel, or a file system of its own
}

TEST_F(KernelTest, errno_stays_what_it_is) {
    errno = EDOM;
    position(-1);
    start_writeback(-1, {0, 1});
    read_ahead(-1, {0, 1});
    is_cached(-1, {0, 1});
    flush(-1);
    FileFacts facts;
    EXPECT_FALSE(stat(-1, facts));
    EXPECT_EQ(errno, EDOM);
}

TEST_F(KernelTest, files_for_which_nothing_can_be_early_are_told_apart) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    EXPECT_EQ(unsuited(ends[1], Direction::write), Why::not_regular);
    ::close(ends[0]);
    ::close(ends[1]);
    const int synchronous = ::open(name_.c_str(), O_WRONLY | O_SYNC | O_CLOEXEC);
    EXPECT_EQ(unsuited(synchronous, Direction::write), Why::synchronous);
    ::close(synchronous);
    const Why usual = unsuited(number_, Direction::write);
    EXPECT_TRUE(usual == Why::none || usual == Why::in_memory);
    ::unlink(name_.c_str());
    EXPECT_EQ(unsuited(number_, Direction::write), usual == Why::none ? Why::unlinked : Why::in_memory);
    const int shared = ::memfd_create("shared", MFD_CLOEXEC);
    EXPECT_EQ(unsuited(shared, Direction::read), Why::in_memory);
    ::close(shared);
}

}  // namespace
}  // namespace preload::kernel
