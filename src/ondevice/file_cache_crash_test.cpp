// What a page cache leaves behind: when its process is killed in the middle of writing back, when the disk is full,
// when its file is deleted or cut short.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "context/test_files.hpp"
#include "ondevice/bad_system_rig.hpp"
#include "ondevice/cache_users_rig.hpp"
#include "ondevice/file_cache.hpp"
#include "ondevice/striped_rig.hpp"

namespace penstock::ondevice {
namespace {

constexpr u64 kPage = 4096, kPages = 64;

FileCacheOptions small(os::System* system = nullptr) {
    FileCacheOptions options;
    options.page_bytes = kPage;
    options.cache_bytes = 16 * kPage;
    options.threads = 2;
    options.slots = 8;
    options.wait_ns = 60'000'000'000;
    options.system = system;
    return options;
}

// Stores `version` to every word of a page.
Status store_page(FileCache& cache, u64 page, u64 version) {
    StoredArray<u64> words(*cache.ref(0));
    std::vector<u64> items(kPage / 8);
    for (u64 i = 0; i < items.size(); ++i) items[i] = users_word(0, page * items.size() + i, version);
    return words.copy_in({page * items.size(), items.size()}, items.data());
}

// The lowest version of a page's words; ~0: one is no word of this page.
u64 lowest_version(const std::vector<u8>& file, u64 page) {
    u64 lowest = ~0ull;
    for (u64 i = 0; i < kPage / 8; ++i) {
        const u64 index = page * (kPage / 8) + i;
        u64 word = 0;
        std::memcpy(&word, &file[index * 8], 8);
        const u64 version = word >> 36;
        if (word != users_word(0, index, version)) return ~0ull;
        lowest = std::min(lowest, version);
    }
    return lowest;
}

// In a process of its own: stores all pages, flushes, tells so, and goes on storing newer versions until it is killed.
[[noreturn]] void store_until_killed(const StripedNames& names, int tell) {
    const OpenedSet opened(names);
    const auto device = make_device("host");
    FileCache cache(*device, {opened.set}, small());
    for (u64 version = 1;; ++version) {
        for (u64 page = 0; page < kPages; ++page)
            if (store_page(cache, page, version) != Status::ok) ::_exit(1);
        if (cache.flush().status != Status::ok) ::_exit(1);
        const auto flushed = static_cast<unsigned char>(std::min<u64>(version, 255));
        if (::write(tell, &flushed, 1) != 1) ::_exit(1);
    }
}

// An array of `files` files.
void expect_flushed_pages_after_a_kill(std::size_t files, unsigned rounds) {
    const test::TempDirectory directory;
    for (unsigned round = 0; round < rounds; ++round) {
        const StripedNames names = striped_names(directory.file(std::to_string(round) + "."), files, 2 * kPage);
        names.write(users_file(0, kPages * kPage));
        int ends[2];
        ASSERT_EQ(::pipe(ends), 0);
        const pid_t child = ::fork();
        if (child == 0) store_until_killed(names, ends[1]);
        ::close(ends[1]);
        unsigned char flushed = 0;
        ASSERT_EQ(::read(ends[0], &flushed, 1), 1) << "it flushed once";
        ::usleep(500 + round * 1500);
        ::kill(child, SIGKILL);
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFSIGNALED(status)) << "exit " << status;
        for (unsigned char next = 0; ::read(ends[0], &next, 1) == 1;) flushed = next;
        ::close(ends[0]);
        const std::vector<u8> file = names.read();
        ASSERT_EQ(file.size(), kPages * kPage);
        for (u64 page = 0; page < kPages; ++page) {
            const u64 version = lowest_version(file, page);
            EXPECT_NE(version, ~0ull) << "page " << page;
            EXPECT_GE(version, flushed) << "page " << page << " of round " << round;
        }
    }
}

TEST(FileCacheCrash, what_was_flushed_before_a_kill_is_in_the_file) { expect_flushed_pages_after_a_kill(1, 8); }
TEST(FileCacheCrash, what_was_flushed_before_a_kill_is_in_all_files) { expect_flushed_pages_after_a_kill(3, 4); }

// Fills, is refused, makes room, and goes on.
void outlasts_a_full_disk(const std::string& name, os::System* system, const std::function<void(bool full)>& fill) {
    const OpenedFile file(name);
    const auto device = make_device("host");
    FileCache cache(*device, {&file.handle}, small(system));
    for (u64 page = 0; page < 8; ++page) ASSERT_EQ(store_page(cache, page, 1), Status::ok);
    ASSERT_EQ(cache.flush().status, Status::ok);
    fill(true);
    for (u64 page = 8; page < 20; ++page) ASSERT_EQ(store_page(cache, page, 2), Status::ok);
    EXPECT_EQ(cache.flush().status, Status::io_error);
    EXPECT_EQ(cache.flush().status, Status::io_error) << "the pages are still dirty";
    u64 refused = 0;
    for (u64 page = 20; page < kPages; ++page) refused += store_page(cache, page, 3) != Status::ok;
    EXPECT_GE(refused, kPages - 20 - 16) << "there is room for no more dirty pages";
    fill(false);
    ASSERT_EQ(cache.flush().status, Status::ok);
    for (u64 page = 20; page < kPages; ++page) ASSERT_EQ(store_page(cache, page, 4), Status::ok);
    ASSERT_EQ(cache.flush().status, Status::ok);
    const std::vector<u8> got = test::read_file(name);
    for (u64 page = 0; page < kPages; ++page)
        EXPECT_EQ(lowest_version(got, page), page < 8 ? 1u : page < 20 ? 2u : 4u) << page;
}

TEST(FileCacheCrash, a_full_disk_keeps_pages_dirty_until_there_is_room) {
    const test::TempDirectory directory;
    const std::string name = directory.file("data");
    test::write_file(name, users_file(0, kPages * kPage));
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
    std::filesystem::resize_file(name, kPages * kPage);  // holes, which need room when they are written
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
    test::write_file(name, users_file(0, kPages * kPage));
    const OpenedFile file(name);
    const auto device = make_device("host");
    FileCache cache(*device, {&file.handle}, small());
    for (u64 page = 0; page < kPages; ++page) ASSERT_EQ(store_page(cache, page, 1), Status::ok);
    std::filesystem::remove(name);
    for (u64 page = 0; page < kPages; page += 2) ASSERT_EQ(store_page(cache, page, 2), Status::ok);
    ASSERT_EQ(cache.flush().status, Status::ok);
    std::vector<u8> got(kPages * kPage);
    ASSERT_EQ(::pread(file.fd.get(), got.data(), got.size(), 0), static_cast<ssize_t>(got.size()));
    for (u64 page = 0; page < kPages; ++page) EXPECT_EQ(lowest_version(got, page), page % 2 == 0 ? 2u : 1u);
}

// What is stored to pages behind the new end is refused or goes into a longer file; the rest arrives.
TEST(FileCacheCrash, a_file_that_is_cut_short_between_store_and_flush) {
    const test::TempDirectory directory;
    const std::string name = directory.file("data");
    test::write_file(name, users_file(0, kPages * kPage));
    const OpenedFile file(name);
    const auto device = make_device("host");
    FileCache cache(*device, {&file.handle}, small());
    for (u64 page = 0; page < 8; ++page) ASSERT_EQ(store_page(cache, page, 1), Status::ok);
    std::filesystem::resize_file(name, 4 * kPage);
    EXPECT_EQ(cache.flush().status, Status::ok);
    u64 word = 0;
    EXPECT_EQ(StoredArray<u64>(*cache.ref(0)).load(30 * kPage / 8, word), Status::truncated);
    const std::vector<u8> got = test::read_file(name);
    ASSERT_EQ(got.size(), 8 * kPage);
    for (u64 page = 0; page < 8; ++page) EXPECT_EQ(lowest_version(got, page), 1u);
}

}  // namespace
}  // namespace penstock::ondevice
