// A DeviceCache over a disk that is full or fails: what it reports, what stays, and what may be lost.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "context/cache/device_cache_rig.hpp"
#include "context/seams.hpp"
#include "context/test_files.hpp"
#include "ondevice/service/held_reads_rig.hpp"
#include "os/system.hpp"
#include "penstock/device_cache.hpp"

namespace penstock {
namespace {

using test::Bytes;
using test::device_of_test;
using test::error_of;

// A disk that is full until it is not.
class FullDisk : public os::System {
  public:
    std::atomic<bool> full{false}, fails_sync{false};
    int fdatasync(int fd) override { return fails_sync ? (errno = EIO, -1) : System::fdatasync(fd); }
    ssize_t pwrite(int fd, const void* data, std::size_t bytes, std::uint64_t offset) override {
        if (full) {
            errno = ENOSPC;
            return -1;
        }
        return os::real_system().pwrite(fd, data, bytes, offset);
    }
};

class CacheOnABadDisk : public testing::Test {
  protected:
    CacheOnABadDisk() { test::write_file(name_, Bytes(5000)); }
    FullDisk disk_;
    const Context context_ = context::make_context({.device = device_of_test()}, {.system = &disk_});
    test::TempDirectory directory_;
    const std::string name_ = directory_.file("small");
};

TEST_F(CacheOnABadDisk, a_close_that_cannot_write_throws_and_can_be_tried_again) {
    const File file = context_.open(name_, {.mode = OpenMode::read_write});
    const DeviceCache cache(context_, {&file, 1}, {.map = false});
    const Buffer from = context_.allocate(1000);
    context_.copy_to_device(from.data(), Bytes(1000, 5).data(), 1000);
    cache.write(0, 4000, from.view());
    disk_.full = true;
    const ErrorInfo error = error_of([&] { cache.close(); });
    EXPECT_EQ(error.code, ErrorCode::no_space) << error.message();
    EXPECT_EQ(error.operation, "flush");
    EXPECT_EQ(error.file, name_);
    disk_.full = false;
    cache.close();
    Bytes expected(5000);
    std::fill_n(expected.begin() + 4000, 1000, static_cast<unsigned char>(5));
    EXPECT_EQ(test::read_file(name_), expected);
}

TEST_F(CacheOnABadDisk, a_sync_that_failed_is_told_by_every_flush_until_the_file_is_opened_anew) {
    for (const bool fails : {true, false}) {
        const File file = context_.open(name_, {.mode = OpenMode::read_write});
        const DeviceCache cache(context_, {&file, 1}, {.map = false});
        const Buffer from = context_.allocate(1000);
        context_.copy_to_device(from.data(), Bytes(1000, 5).data(), 1000);
        cache.write(0, 0, from.view());
        if (!fails) return cache.close();
        disk_.fails_sync = true;
        const ErrorInfo error = error_of([&] { cache.flush(); });
        EXPECT_EQ(error.code, ErrorCode::io_error);
        EXPECT_EQ(error.file, name_);
        EXPECT_NE(error.cause.find("may be lost: Input/output error"), std::string::npos) << error.message();
        disk_.fails_sync = false;
        EXPECT_EQ(error_of([&] { cache.flush(); }).message(), error.message()) << "the system tells of it once";
        EXPECT_EQ(error_of([&] { cache.close(); }).code, ErrorCode::io_error);
    }
}

// A disk that takes its time.
class SlowDisk : public os::System {
  public:
    std::atomic<int> write_ms{0}, sync_ms{0};
    std::atomic<int> once_ms{0};  // the next write of the first page alone
    int fdatasync(int fd) override {
        const Call call(calls_);
        std::this_thread::sleep_for(std::chrono::milliseconds(sync_ms));
        return System::fdatasync(fd);
    }
    ssize_t pwrite(int fd, const void* data, std::size_t bytes, std::uint64_t offset) override {
        const Call call(calls_);
        const int ms = write_ms + (offset == 0 ? once_ms.exchange(0) : 0);
        std::this_thread::sleep_for(std::chrono::milliseconds(ms));
        return System::pwrite(fd, data, bytes, offset);
    }
    int open(const char* name, int flags, unsigned mode) override {
        return (flags & O_DIRECT) != 0 ? (errno = EINVAL, -1) : System::open(name, flags, mode);
    }
    void wait_until_idle() const {
        while (calls_ != 0) std::this_thread::yield();
    }

  private:
    class Call {
      public:
        explicit Call(std::atomic<int>& calls) : calls_(calls) { ++calls_; }
        ~Call() { --calls_; }
        Call(const Call&) = delete;
        Call& operator=(const Call&) = delete;

      private:
        std::atomic<int>& calls_;
    };
    std::atomic<int> calls_{0};  // under way
};

class CacheOnASlowDisk : public testing::Test {
  protected:
    static constexpr std::uint64_t kPage = 4096, kPages = 200;
    DeviceCache made(std::chrono::milliseconds timeout, std::uint32_t threads = 1) const {
        return DeviceCache(context_, {&file_, 1}, {.threads = threads, .slots = 4, .timeout = timeout, .map = false});
    }
    void write(const DeviceCache& cache) const {
        const Buffer from = context_.allocate(kPages * kPage);
        context_.copy_to_device(from.data(), Bytes(kPages * kPage, 9).data(), kPages * kPage);
        cache.write(0, 0, from.view());
    }
    bool all_written() const { return test::read_file(name_) == Bytes(kPages * kPage, 9); }

    const test::TempDirectory directory_;
    const std::string name_ = directory_.file("array");
    SlowDisk disk_;
    const Context context_ = context::make_context({.device = device_of_test()}, {.system = &disk_});
    const File file_ = [this] {
        test::write_file(name_, Bytes(kPages * kPage));
        return context_.open(name_, {.mode = OpenMode::read_write});
    }();
};

// Each page goes in a fraction of the timeout; all of them together take several times as long.
TEST_F(CacheOnASlowDisk, many_pages_may_take_longer_together_than_one_may) {
    const DeviceCache cache = made(std::chrono::seconds(1));
    write(cache);
    disk_.write_ms = 10;
    const auto began = std::chrono::steady_clock::now();
    cache.flush();
    EXPECT_GT(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(1500)) << "or this shows nothing";
    EXPECT_TRUE(all_written());
    cache.close();
}

// The first page does not go in its time, and others do: it has another turn with them.
TEST_F(CacheOnASlowDisk, a_flush_goes_on_while_some_pages_go) {
    const DeviceCache cache = made(std::chrono::seconds(1), 4);
    write(cache);
    disk_.once_ms = 1400;
    cache.flush();
    EXPECT_EQ(disk_.once_ms, 0) << "or this shows nothing";
    EXPECT_TRUE(all_written());
    cache.close();
}

TEST_F(CacheOnASlowDisk, and_ends_where_none_goes) {
    const DeviceCache cache = made(std::chrono::milliseconds(200), 4);
    write(cache);
    disk_.write_ms = 1500;
    EXPECT_EQ(error_of([&] { cache.flush(); }).code, ErrorCode::timed_out);
    disk_.write_ms = 0;
    disk_.wait_until_idle();
    cache.flush();
    EXPECT_TRUE(all_written());
    cache.close();
}

TEST_F(CacheOnASlowDisk, a_sync_may_take_longer_than_a_page_but_not_for_ever) {
    const DeviceCache cache = made(std::chrono::milliseconds(50));
    write(cache);
    disk_.sync_ms = 300;
    cache.flush();
    disk_.sync_ms = 2500;
    write(cache);
    const ErrorInfo late = error_of([&] { cache.flush(); });
    EXPECT_EQ(late.code, ErrorCode::timed_out);
    EXPECT_NE(late.cause.find("the sync of a file took longer than 1.5 s"), std::string::npos) << late.message();
    EXPECT_EQ(late.file, name_);
    EXPECT_TRUE(all_written());
    disk_.sync_ms = 0;
    disk_.wait_until_idle();
    cache.flush();
    cache.close();
}

// A disk whose reads fail a while after all reads that are to fail together have begun. There is no O_DIRECT.
class FailsTogether : public os::System {
  public:
    std::atomic<std::size_t> asked{0}, together{0};
    int open(const char* name, int flags, unsigned mode) override {
        return (flags & O_DIRECT) != 0 ? (errno = EINVAL, -1) : System::open(name, flags, mode);
    }
    ssize_t pread(int, void*, std::size_t, std::uint64_t) override {
        while (asked < together) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        errno = EIO;
        return -1;
    }
};

// Each call's Error names the place that the call asked for, by bytes and by rows.
TEST(CacheOnALostDisk, calls_that_fail_at_once_name_their_own_places) {
    constexpr std::uint64_t kPage = 4096, kPages = 60;
    const test::TempDirectory directory;
    const std::string name = directory.file("large");
    test::write_file(name, Bytes(kPages * kPage));
    FailsTogether disk;
    const Context context = context::make_context({.device = device_of_test()}, {.system = &disk});
    const File file = context.open(name);
    if (!ondevice::made_cold(name)) GTEST_SKIP() << "this file cannot be cold";
    const DeviceCache cache(context, {&file, 1}, {.threads = 4, .map = false});
    const std::vector<std::uint64_t> pages{3, 23, 43};
    std::vector<Buffer> rows_to, indices;  // before kernels wait, since a GPU may allocate only after them
    for (const std::uint64_t page : pages) {
        rows_to.push_back(context.allocate(kPage));
        indices.push_back(context.allocate(sizeof(page)));
        context.copy_to_device(indices.back().data(), &page, sizeof(page));
    }
    for (const bool rows : {false, true}) {
        disk.together = disk.asked + pages.size();
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < pages.size(); ++i) {
            threads.emplace_back([&, i] {
                ++disk.asked;
                const ErrorInfo told = error_of([&] {
                    if (rows)
                        cache.gather(0, {.row_bytes = kPage}, indices[i].view(), rows_to[i].view());
                    else
                        cache.read(0, pages[i] * kPage, rows_to[i].view());
                });
                EXPECT_EQ(told.code, ErrorCode::io_error) << told.message();
                EXPECT_EQ(told.system_code, EIO) << told.message();
                EXPECT_EQ(told.offset_bytes, pages[i] * kPage) << told.message();
            });
        }
        for (std::thread& thread : threads) thread.join();
    }
}

// A disk that holds reads of one page until the test lets them go, and fails reads of others if told to. There is no
// O_DIRECT.
class HoldsOnePage : public os::System {
  public:
    explicit HoldsOnePage(std::uint64_t held_at, bool others_fail = true)
        : held_at_(held_at), others_fail_(others_fail) {}
    std::atomic<bool> held{true}, waiting{false};
    int open(const char* name, int flags, unsigned mode) override {
        return (flags & O_DIRECT) != 0 ? (errno = EINVAL, -1) : System::open(name, flags, mode);
    }
    ssize_t pread(int fd, void* memory, std::size_t bytes, std::uint64_t offset) override {
        if (offset == held_at_) {
            waiting = true;
            held.wait(true);
        } else if (others_fail_) {
            return errno = EIO, -1;
        }
        return System::pread(fd, memory, bytes, offset);
    }
    void let_go() {
        held = false;
        held.notify_all();
    }

  private:
    const std::uint64_t held_at_;
    const bool others_fail_;
};

// A load fails, the call only joins it, and another call fails at another page meanwhile.
TEST(CacheOnALostDisk, a_call_is_not_told_of_a_page_that_another_could_not_read) {
    constexpr std::uint64_t kPage = 4096, kPages = 60, kHeld = 50, kFailed = 3, kOther = 23;
    const test::TempDirectory directory;
    const std::string name = directory.file("large");
    test::write_file(name, Bytes(kPages * kPage));
    HoldsOnePage disk(kHeld * kPage);
    const Context context = context::make_context({.device = device_of_test()}, {.system = &disk});
    const File file = context.open(name);
    if (!ondevice::made_cold(name)) GTEST_SKIP() << "this file cannot be cold";
    // A thread for each slot: one that is held back by the disk serves nothing else.
    const DeviceCache cache(context, {&file, 1}, {.threads = 8, .slots = 8, .map = false});
    const auto until = [](const auto& done) {
        while (!done()) std::this_thread::yield();
    };
    const Buffer to = context.allocate(kPage);  // allocated before kernels wait
    cache.prefetch(0, kFailed * kPage, kPage);
    until([&] { return cache.statistics().failed_requests == 1; });
    std::thread gathers([&] {
        const std::uint64_t pages[]{kHeld, kFailed};
        const Buffer rows = context.allocate(2 * kPage), index = context.allocate(sizeof(pages));
        context.copy_to_device(index.data(), pages, sizeof(pages));
        const ErrorInfo told = error_of([&] { cache.gather(0, {.row_bytes = kPage}, index.view(), rows.view()); });
        EXPECT_EQ(told.code, ErrorCode::io_error) << told.message();
        EXPECT_EQ(told.offset_bytes, kFailed * kPage) << told.message();
    });
    until([&] { return disk.waiting.load(); });
    const ErrorInfo other = error_of([&] { cache.read(0, kOther * kPage, to.view()); });
    EXPECT_EQ(other.code, ErrorCode::io_error) << other.message();
    EXPECT_EQ(other.offset_bytes, kOther * kPage) << other.message();
    disk.let_go();
    gathers.join();
}

// The worker that waits for a slow page has few rows left to do: the others do the rest meanwhile.
TEST(CacheOnALostDisk, rows_do_not_wait_for_one_that_the_disk_holds_back) {
    constexpr std::uint64_t kPage = 4096, kPages = 1200, kFewRows = 8;
    const test::TempDirectory directory;
    const std::string name = directory.file("large");
    test::write_file(name, Bytes(kPages * kPage, 3));
    HoldsOnePage disk(0, false);
    const Context context = context::make_context({.device = device_of_test()}, {.system = &disk});
    const File file = context.open(name);
    if (!ondevice::made_cold(name)) GTEST_SKIP() << "this file cannot be cold";
    // A thread for each slot: one that is held back by the disk serves nothing else.
    const DeviceCache cache(context, {&file, 1},
                            {.cache_bytes = 2 * kPages * kPage, .threads = 8, .slots = 8, .map = false});
    std::vector<std::uint64_t> pages(kPages);
    std::iota(pages.begin(), pages.end(), std::uint64_t{0});
    const Buffer to = context.allocate(kPages * kPage), index = context.allocate(kPages * sizeof(pages[0]));
    context.copy_to_device(index.data(), pages.data(), index.view().bytes);
    std::thread gathers([&] { cache.gather(0, {.row_bytes = kPage}, index.view(), to.view()); });
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    std::uint64_t begun = 0;
    while (begun + kFewRows < kPages && std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        begun = cache.statistics().total.misses;
    }
    EXPECT_TRUE(disk.waiting);
    disk.let_go();
    gathers.join();
    EXPECT_GE(begun + kFewRows, kPages);
    Bytes rows(kPages * kPage);
    context.copy_to_host(rows.data(), to.data(), rows.size());
    EXPECT_EQ(rows, Bytes(kPages * kPage, 3));
}

}  // namespace
}  // namespace penstock
