// What ServedFile says of requests, of cached ranges, and of bytes that are no longer there.
#include "ondevice/files/served_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "context/test_files.hpp"
#include "ondevice/service/opened_file_rig.hpp"
#include "os/file/residency.hpp"

namespace penstock::ondevice {
namespace {

constexpr u64 kBytes = 1 << 20;

class ServedFileTest : public testing::Test {
  protected:
    ServedFileTest() { test::write_file(name_, test::stamped(kBytes)); }
    // Drops all of the file, because the system keeps pages in larger pieces. It asks again, because the system passes
    // once over pages on their way into its lists.
    bool dropped(int fd, u64 bytes) const {
        for (int tries = 0; tries < 50 && os::residency(fd, 0, bytes).resident_pages != 0; ++tries) {
            os::drop_cache(os::real_system(), fd, name_);
        }
        return os::residency(fd, 0, bytes).resident_pages == 0;
    }
    test::TempDirectory directory_;
    const std::string name_ = directory_.file("data");
};

TEST_F(ServedFileTest, tells_what_is_wrong_with_a_request) {
    const OpenedFile opened(name_, O_RDONLY);
    const ServedFile file(opened.handle);
    EXPECT_EQ(file.size_bytes(), kBytes);
    EXPECT_EQ(file.check({0, 0, 1, 0, RequestOperation::read, 0}), Status::ok);
    EXPECT_EQ(file.check({kBytes - 1, 0, 1, 0, RequestOperation::read, 0}), Status::ok);
    EXPECT_EQ(file.check({kBytes - 1, 0, 2, 0, RequestOperation::read, 0}), Status::out_of_range);
    EXPECT_EQ(file.check({~0ull, 0, 2, 0, RequestOperation::read, 0}), Status::out_of_range) << "sums do not wrap";
    EXPECT_EQ(file.check({0, 0, 0, 0, RequestOperation::read, 0}), Status::invalid);
    EXPECT_EQ(file.check({0, 0, 1, 0, RequestOperation::write, 0}), Status::read_only);
    EXPECT_EQ(file.check({0, 0, 0, 0, RequestOperation::flush, 0}), Status::ok);
}

TEST_F(ServedFileTest, knows_which_ranges_are_cached) {
    const OpenedFile opened(name_);
    if (!dropped(opened.fd.get(), kBytes)) GTEST_SKIP() << "stays in memory here";
    std::vector<unsigned char> half(kBytes / 2);
    ASSERT_EQ(::pread(opened.fd.get(), half.data(), half.size(), kBytes / 2), static_cast<ssize_t>(half.size()));
    ServedFile file(opened.handle);
    EXPECT_FALSE(file.cached(4096, 4096, Native::now_ns()));
    EXPECT_EQ(file.cached(kBytes / 2 + 4096, 4096, Native::now_ns()),
              os::cached_fraction(opened.fd.get(), 0, 4096).has_value())
        << "without cachestat a file of which some is cached is read by descriptors";
}

// A copy of a page that is not cached would read the disk by a fault, and evidence would count it as a copy from
// memory.
TEST_F(ServedFileTest, a_file_of_which_a_few_pages_are_missing_is_not_all_cached) {
    constexpr u64 kLarge = 8 << 20, kMissing = 16384;
    test::write_file(name_, test::stamped(kLarge));
    const OpenedFile opened(name_);
    if (!dropped(opened.fd.get(), kLarge)) GTEST_SKIP() << "stays in memory here";
    ASSERT_EQ(::posix_fadvise(opened.fd.get(), 0, 0, POSIX_FADV_RANDOM), 0);  // the system reads nothing ahead
    std::vector<unsigned char> most(kLarge - kMissing);
    ASSERT_EQ(::pread(opened.fd.get(), most.data(), most.size(), 0), static_cast<ssize_t>(most.size()));
    const double there = os::residency(opened.fd.get(), 0, kLarge).fraction();
    if (there == 1.0) GTEST_SKIP() << "the file system read ahead";
    ASSERT_GT(there, 0.995);
    ServedFile file(opened.handle);
    EXPECT_FALSE(file.cached(kLarge - 4096, 4096, Native::now_ns()));
    EXPECT_EQ(file.cached(4096, 4096, Native::now_ns()), os::cached_fraction(opened.fd.get(), 0, 4096).has_value());
}

TEST_F(ServedFileTest, copies_what_is_there_and_says_when_it_is_not) {
    const OpenedFile opened(name_);
    const ServedFile file(opened.handle);
    std::vector<unsigned char> got(5000);
    EXPECT_TRUE(file.guard().copy(got.data(), file.at(777), got.size()));
    EXPECT_EQ(got, test::stamped(got.size(), 777));
    std::filesystem::resize_file(name_, 8192);
    EXPECT_FALSE(file.guard().copy(got.data(), file.at(100'000), got.size()));
    EXPECT_TRUE(file.guard().copy(got.data(), file.at(0), got.size()));
}

TEST_F(ServedFileTest, of_no_bytes_has_no_range) {
    std::filesystem::resize_file(name_, 0);
    const OpenedFile opened(name_);
    ServedFile file(opened.handle);
    EXPECT_EQ(file.check({0, 0, 1, 0, RequestOperation::read, 0}), Status::out_of_range);
    EXPECT_FALSE(file.cached(0, 1, Native::now_ns()));
}

}  // namespace
}  // namespace penstock::ondevice
