// What a page cache leaves in its file if the disk is full, or if the file is deleted or cut short. On the device that
// PENSTOCK_TEST_DEVICE names, else on the emulated one.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>

#include "context/test_files.hpp"
#include "ondevice/file_cache/crash_rig.hpp"
#include "ondevice/service/bad_system_rig.hpp"
#include "ondevice/service/striped_rig.hpp"

namespace penstock::ondevice {
namespace {

constexpr u64 kPage = kCrashPage, kPages = kCrashPages;

// Fills the disk, gets refusals, makes room, and goes on.
void outlasts_a_full_disk(const std::string& name, os::System* system, const std::function<void(bool full)>& fill) {
    const OpenedFile file(name);
    CrashCache cache(&file.handle, system);
    for (u64 page = 0; page < 8; ++page) ASSERT_EQ(cache.store(page, 1), Status::ok);
    ASSERT_EQ(cache.flush(), Status::ok);
    fill(true);
    for (u64 page = 8; page < 20; ++page) ASSERT_EQ(cache.store(page, 2), Status::ok);
    EXPECT_EQ(cache.flush(), Status::io_error);
    EXPECT_EQ(cache.flush(), Status::io_error) << "the pages are still dirty";
    u64 refused = 0;
    for (u64 page = 20; page < kPages; ++page) refused += cache.store(page, 3) != Status::ok;
    EXPECT_GE(refused, kPages - 20 - kCrashFrames) << "there is room for no more dirty pages";
    fill(false);
    ASSERT_EQ(cache.flush(), Status::ok);
    for (u64 page = 20; page < kPages; ++page) ASSERT_EQ(cache.store(page, 4), Status::ok);
    ASSERT_EQ(cache.flush(), Status::ok);
    const std::vector<u8> got = test::read_file(name);
    for (u64 page = 0; page < kPages; ++page)
        EXPECT_EQ(lowest_version(got, page), page < 8 ? 1u : page < 20 ? 2u : 4u) << page;
}

TEST(FileCacheCrash, a_full_disk_keeps_pages_dirty_until_there_is_room) {
    const test::TempDirectory directory;
    const std::string name = directory.file("data");
    test::write_file(name, crash_file());
    BadDays system;
    outlasts_a_full_disk(name, &system, [&](bool full) { system.full = full; });
}

class SmallDisk {
  public:
    explicit SmallDisk(const std::string& at) : at_(at) {
        std::filesystem::create_directory(at);
        mounted_ = ::mount("penstock", at.c_str(), "tmpfs", 0, "size=512k") == 0;
    }
    ~SmallDisk() {
        if (mounted_) ::umount2(at_.c_str(), MNT_DETACH);
    }
    bool mounted() const { return mounted_; }

  private:
    const std::string at_;
    bool mounted_;
};

TEST(FileCacheCrash, a_disk_that_is_full_indeed) {
    const test::TempDirectory directory;
    const SmallDisk disk(directory.file("disk"));
    if (!disk.mounted()) GTEST_SKIP() << "may not mount";
    const std::string name = directory.file("disk/data"), other = directory.file("disk/other");
    test::write_file(name, {});
    std::filesystem::resize_file(name, kPages * kPage);  // holes need room when they are written
    outlasts_a_full_disk(name, nullptr, [&](bool full) {
        if (!full) return static_cast<void>(std::filesystem::remove(other));
        std::ofstream filler(other, std::ios::binary);
        const std::vector<char> page(kPage);
        while (filler.write(page.data(), kPage).flush()) {
        }
    });
}

TEST(FileCacheCrash, a_deleted_file_is_written_and_read_until_it_is_closed) {
    const test::TempDirectory directory;
    const std::string name = directory.file("data");
    test::write_file(name, crash_file());
    const OpenedFile file(name);
    CrashCache cache(&file.handle);
    for (u64 page = 0; page < kPages; ++page) ASSERT_EQ(cache.store(page, 1), Status::ok);
    std::filesystem::remove(name);
    for (u64 page = 0; page < kPages; page += 2) ASSERT_EQ(cache.store(page, 2), Status::ok);
    ASSERT_EQ(cache.flush(), Status::ok);
    std::vector<u8> got(kPages * kPage);
    ASSERT_EQ(::pread(file.fd.get(), got.data(), got.size(), 0), static_cast<ssize_t>(got.size()));
    for (u64 page = 0; page < kPages; ++page) EXPECT_EQ(lowest_version(got, page), page % 2 == 0 ? 2u : 1u);
}

// Stores to pages behind the new end fail, or make the file longer; all other stores arrive.
TEST(FileCacheCrash, a_file_that_is_cut_short_between_store_and_flush) {
    const test::TempDirectory directory;
    const std::string name = directory.file("data");
    test::write_file(name, crash_file());
    const OpenedFile file(name);
    CrashCache cache(&file.handle);
    for (u64 page = 0; page < 8; ++page) ASSERT_EQ(cache.store(page, 1), Status::ok);
    ASSERT_EQ(cache.load(31), Status::ok) << "control: behind the new end, before it is cut";
    std::filesystem::resize_file(name, 4 * kPage);
    EXPECT_EQ(cache.flush(), Status::ok);
    EXPECT_EQ(cache.load(30), Status::truncated);
    const std::vector<u8> got = test::read_file(name);
    ASSERT_EQ(got.size(), 8 * kPage);
    for (u64 page = 0; page < 8; ++page) EXPECT_EQ(lowest_version(got, page), 1u);
}

}  // namespace
}  // namespace penstock::ondevice
