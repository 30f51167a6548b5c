// An array in stripes over several files behind a page cache. The tests compare every byte with an oracle, whichever
// file has it, and check what one bad file does, and does not do to the others. On the device that PENSTOCK_TEST_DEVICE
// names, else on the emulated one.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <random>

#include "context/test_files.hpp"
#include "ondevice/cache/file_cache.hpp"
#include "ondevice/device_rig.hpp"
#include "ondevice/service/bad_system_rig.hpp"
#include "ondevice/service/striped_rig.hpp"
#include "os/file/residency.hpp"

namespace penstock::ondevice {
namespace {

constexpr u64 kStripedPage = 4096;

class StripedCacheTest : public testing::Test {
  protected:
    FileCacheOptions options(u64 frames = 16, os::System* system = nullptr) const {
        FileCacheOptions options;
        options.page_bytes = kStripedPage;
        options.cache_bytes = frames * kStripedPage;
        options.threads = 2;
        options.wait_ns = 60'000'000'000;
        options.system = system;
        return options;
    }
    StripedNames made(std::size_t files, u64 stripe, const FileBytes& content) {
        StripedNames names = striped_names(directory_.file("part"), files, stripe);
        names.write(content);
        return names;
    }
    FileBytes read(FileCache& cache, u64 first, u64 count) {
        const OnDevice to(*device_, count);
        const CacheWork work{.task = CacheTask::read, .first = first, .count = count, .memory = to.data()};
        const auto failure = cache.run(0, work);
        EXPECT_EQ(failure.status, Status::ok) << words(failure.status) << " at " << failure.where;
        return to.bytes();
    }
    FileCache::Failure write(FileCache& cache, u64 first, const FileBytes& bytes) {
        const OnDevice from(*device_, bytes.data(), bytes.size());
        return cache.run(0, {.task = CacheTask::write, .first = first, .count = bytes.size(), .memory = from.data()});
    }

    std::shared_ptr<Device> device_ = test_device();
    test::TempDirectory directory_;
};

struct StripedCase {
    std::size_t files;
    u64 stripe;
    u64 bytes;
};

// Neither the last stripe nor the last page is whole.
std::vector<StripedCase> cases() {
    std::vector<StripedCase> all;
    for (const std::size_t files : {1, 2, 3, 5}) {
        for (const u64 stripe : {kStripedPage, 4 * kStripedPage}) {
            all.push_back({files, stripe, 5 * files * stripe + stripe / 2 + 77});
            all.push_back({files, stripe, 4 * files * stripe + 2 * stripe - 1});
        }
    }
    return all;
}

TEST_F(StripedCacheTest, what_is_read_and_written_at_random_is_where_it_belongs) {
    std::mt19937_64 random(3);
    for (const StripedCase& one : cases()) {
        FileBytes expected = test::stamped(one.bytes);
        const StripedNames names = made(one.files, one.stripe, expected);
        const OpenedSet opened(names);
        FileCache cache(*device_, {opened.set}, options(8));
        ASSERT_EQ(cache.bytes(0), one.bytes);
        for (int turn = 0; turn < 24; ++turn) {
            const u64 first = random() % one.bytes;
            const u64 count = 1 + random() % std::min<u64>(5 * one.stripe, one.bytes - first);
            if (turn % 2 == 0) {
                const FileBytes bytes = test::stamped(count, random() % 1000);
                std::copy(bytes.begin(), bytes.end(), expected.begin() + static_cast<std::ptrdiff_t>(first));
                ASSERT_EQ(write(cache, first, bytes).status, Status::ok);
            } else {
                const auto from = expected.begin() + static_cast<std::ptrdiff_t>(first);
                ASSERT_EQ(read(cache, first, count), FileBytes(from, from + static_cast<std::ptrdiff_t>(count)))
                    << one.files << " files, stripes of " << one.stripe << ", bytes from " << first;
            }
        }
        ASSERT_EQ(read(cache, 0, one.bytes), expected);
        ASSERT_EQ(cache.flush().status, Status::ok);
        EXPECT_EQ(names.read(), expected) << one.files << " files, stripes of " << one.stripe;
        const auto dealt_sizes = dealt(expected, one.files, one.files == 1 ? one.bytes : one.stripe);
        for (std::size_t i = 0; i < one.files; ++i)
            EXPECT_EQ(std::filesystem::file_size(names.names[i]), dealt_sizes[i].size()) << "no file grew";
    }
}

TEST_F(StripedCacheTest, control_files_dealt_out_otherwise_are_read_wrong) {
    const FileBytes content = test::stamped(24 * kStripedPage);
    StripedNames names = made(3, 2 * kStripedPage, content);
    const auto reads_right = [&] {
        const OpenedSet opened(names, O_RDONLY);
        FileCache cache(*device_, {opened.set}, options());
        return read(cache, 0, content.size()) == content;
    };
    EXPECT_TRUE(reads_right());
    names.stripe = kStripedPage;
    EXPECT_FALSE(reads_right()) << "other stripes";
    names.stripe = 2 * kStripedPage;
    std::swap(names.names[0], names.names[2]);
    EXPECT_FALSE(reads_right()) << "another order";
}

TEST_F(StripedCacheTest, evidence_tells_files_apart) {
    const FileBytes content = test::stamped(9 * kStripedPage + 100);
    const OpenedSet opened(made(3, 2 * kStripedPage, content));
    FileCache cache(*device_, {opened.set}, options(64));
    read(cache, 0, content.size());
    ASSERT_EQ(write(cache, 2 * kStripedPage + 5, FileBytes(10)).status, Status::ok);
    ASSERT_EQ(cache.flush().status, Status::ok);
    const ServiceEvidence evidence = cache.evidence();
    const std::vector<MovedByGpu> moved = cache.moved();
    ASSERT_EQ(evidence.files.size(), 3u);
    ASSERT_EQ(moved.size(), 3u);
    // The files have stripes 0 and 3, 1 and 4, 2. Each file was flushed, and a page of the second was written.
    const u64 requests[] = {4 + 1, 4 + 2, 2 + 1};
    const u64 bytes[] = {4 * kStripedPage, 4 * kStripedPage + 100, 2 * kStripedPage};
    u64 all = 0;
    for (std::size_t file = 0; file < 3; ++file) {
        u64 asked = 0, came = 0;
        for (const ServedCount& one : evidence.files[file].by_source) asked += one.requests, came += one.bytes;
        all += came;
        EXPECT_EQ(asked + moved[file].pages, requests[file]) << "file " << file;
        EXPECT_EQ(came + moved[file].bytes, bytes[file]) << "file " << file;
        EXPECT_EQ(evidence.files[file].failed, 0u);
    }
    u64 sum = 0;
    for (const ServedCount& one : evidence.by_source) sum += one.bytes;
    EXPECT_EQ(sum, all);
}

TEST_F(StripedCacheTest, pages_from_a_cold_disk_come_past_the_systems_cache_of_each_file) {
    const FileBytes content = test::stamped(512 * kStripedPage + 100);
    const OpenedSet opened(made(2, 64 * kStripedPage, content), O_RDONLY);
    for (const auto& file : opened.files) {
        for (int tries = 0; tries < 50; ++tries) os::drop_cache(os::real_system(), file->fd.get(), file->handle.name);
        const auto left = os::residency(file->fd.get(), 0, layout_of(opened.set, kStripedPage).sizes[0]).resident_pages;
        if (left != 0 || file->handle.direct_fd < 0) GTEST_SKIP() << "stays in memory here, or has no O_DIRECT";
    }
    FileCache cache(*device_, {opened.set}, options(1024));
    EXPECT_EQ(read(cache, 0, content.size()), content);
    const ServiceEvidence evidence = cache.evidence();
    for (const FileEvidence& file : evidence.files)
        EXPECT_GE(file.by_source[static_cast<std::size_t>(Source::direct)].requests, 250u);
}

// One of three files is bad.
class BadFileTest : public StripedCacheTest {
  protected:
    static constexpr u64 kStripe = 2 * kStripedPage, kBytes = 24 * kStripedPage;
    BadFileTest() {
        opened_.emplace(names_);
        for (auto& file : opened_->files) file->handle.direct_fd = -1;
        system_.only_fd = opened_->files[1]->handle.buffered_fd;
        auto wanted = options(32, &system_);
        wanted.map = false;
        cache_.emplace(*device_, std::vector<FileSet>{opened_->set}, wanted);
    }
    // Any page of the bad file may fail first: warps of a GPU write them in any order.
    void expect_failed(const FileCache::Failure& failure, RequestOperation operation, int code) {
        EXPECT_EQ(failure.status, Status::io_error);
        ASSERT_FALSE(failure.storage.empty());
        EXPECT_EQ(failure.storage[0].file, 1u);
        EXPECT_EQ(failure.storage[0].operation, operation);
        EXPECT_LT(failure.storage[0].offset_bytes, 8 * kStripedPage);
        EXPECT_EQ(failure.storage[0].offset_bytes % kStripedPage, 0u);
        EXPECT_EQ(failure.storage[0].system_code, code);
    }

    FileBytes content_ = test::stamped(kBytes);
    const StripedNames names_ = made(3, kStripe, content_);
    BadDays system_;
    std::optional<OpenedSet> opened_;
    std::optional<FileCache> cache_;
};

TEST_F(BadFileTest, a_full_disk_keeps_its_own_pages_only_until_there_is_room) {
    ASSERT_EQ(write(*cache_, 0, FileBytes(kBytes, 7)).status, Status::ok);
    system_.full = true;
    expect_failed(cache_->flush(), RequestOperation::write, ENOSPC);
    for (const std::size_t file : {0u, 2u})
        EXPECT_EQ(test::read_file(names_.names[file]), FileBytes(8 * kStripedPage, 7)) << "others are written";
    EXPECT_EQ(test::read_file(names_.names[1]), dealt(content_, 3, kStripe)[1]);
    // The cache tries each page of the bad file together with those beside it, and by itself.
    EXPECT_GE(cache_->evidence().files[1].failed, 8u);
    EXPECT_LE(cache_->evidence().files[1].failed, 16u);
    EXPECT_EQ(cache_->evidence().files[0].failed + cache_->evidence().files[2].failed, 0u);
    EXPECT_EQ(read(*cache_, 0, kBytes), FileBytes(kBytes, 7)) << "it stays in the cache";
    system_.full = false;
    EXPECT_EQ(cache_->flush().status, Status::ok);
    EXPECT_EQ(names_.read(), FileBytes(kBytes, 7));
}

TEST_F(BadFileTest, a_sync_that_fails_names_its_file_and_the_others_are_synced) {
    ASSERT_EQ(write(*cache_, 0, FileBytes(kBytes, 7)).status, Status::ok);
    system_.fails_sync = 1;
    expect_failed(cache_->flush(), RequestOperation::flush, EIO);
    EXPECT_EQ(cache_->evidence().files[1].failed, 1u);
    EXPECT_EQ(names_.read(), FileBytes(kBytes, 7));
    system_.good();
    expect_failed(cache_->flush(), RequestOperation::flush, EIO);
}

TEST_F(BadFileTest, a_file_cut_short_underneath_is_a_status_and_the_others_are_read) {
    read(*cache_, 0, kStripedPage);
    std::filesystem::resize_file(names_.names[1], kStripe + 100);
    const OnDevice to(*device_, kBytes);
    const auto failure = cache_->run(0, {.task = CacheTask::read, .count = kBytes, .memory = to.data()});
    EXPECT_EQ(failure.status, Status::truncated);
    ASSERT_FALSE(failure.storage.empty());
    EXPECT_EQ(failure.storage[0].file, 1u);
    EXPECT_GE(failure.storage[0].offset_bytes + kStripedPage, kStripe + 100);
    const auto content = content_.begin();
    EXPECT_EQ(read(*cache_, 0, 6 * kStripedPage), FileBytes(content, content + 6 * kStripedPage)) << "its beginning";
    EXPECT_EQ(read(*cache_, 10 * kStripedPage, 4 * kStripedPage),
              FileBytes(content + 10 * kStripedPage, content + 14 * kStripedPage));
}

// A system that forgets what was not synced when the power goes.
class PowerCut : public os::System {
  public:
    std::atomic<int> lies_of{-1};  // a file whose sync does nothing and reports success

    ssize_t pwrite(int fd, const void* memory, std::size_t bytes, std::uint64_t offset) override {
        const std::scoped_lock lock(mutex_);
        FileBytes before(bytes);
        const ssize_t there = System::pread(fd, before.data(), bytes, offset);
        before.resize(there < 0 ? 0 : static_cast<std::size_t>(there));
        unsynced_[fd].push_back({offset, std::move(before)});
        return System::pwrite(fd, memory, bytes, offset);
    }
    int fdatasync(int fd) override {
        const std::scoped_lock lock(mutex_);
        if (fd != lies_of) unsynced_[fd].clear();
        return 0;
    }
    void cut() {
        for (auto& [fd, writes] : unsynced_) {
            for (auto one = writes.rbegin(); one != writes.rend(); ++one)
                System::pwrite(fd, one->before.data(), one->before.size(), one->offset);
        }
    }

  private:
    struct Write {
        u64 offset;
        FileBytes before;
    };
    std::mutex mutex_;
    std::map<int, std::vector<Write>> unsynced_;
};

class PowerCutTest : public StripedCacheTest {
  protected:
    // Writes all of the array, flushes it, cuts the power, and returns what is in the files.
    FileBytes left_after_flush(std::size_t files, bool one_lies) {
        const StripedNames names = made(files, 2 * kStripedPage, test::stamped(kBytes));
        OpenedSet opened(names);
        for (auto& file : opened.files) file->handle.direct_fd = -1;
        PowerCut system;
        if (one_lies) system.lies_of = opened.files.back()->handle.buffered_fd;
        auto wanted = options(8, &system);
        wanted.map = false;
        FileCache cache(*device_, {opened.set}, wanted);
        EXPECT_EQ(write(cache, 0, FileBytes(kBytes, 9)).status, Status::ok);
        EXPECT_EQ(cache.flush().status, Status::ok);
        system.cut();
        return names.read();
    }
    static constexpr u64 kBytes = 30 * kStripedPage + 5;
};

TEST_F(PowerCutTest, what_was_flushed_is_in_all_files) {
    for (const std::size_t files : {1, 2, 5}) EXPECT_EQ(left_after_flush(files, false), FileBytes(kBytes, 9)) << files;
}

TEST_F(PowerCutTest, control_a_file_that_was_not_synced_is_found) {
    EXPECT_NE(left_after_flush(3, true), FileBytes(kBytes, 9));
}

}  // namespace
}  // namespace penstock::ondevice
