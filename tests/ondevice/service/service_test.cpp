// The service under host threads that stand for warps: every byte is the file's, and every request ends once with its
// status, even if the file is cut short, the disk fails or the service ends.
#include "ondevice/service/service.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <random>
#include <thread>

#include "context/test_files.hpp"
#include "ondevice/channel/memory_rig.hpp"
#include "ondevice/service/held_reads_rig.hpp"
#include "ondevice/service/opened_file_rig.hpp"
#include "os/file/residency.hpp"

namespace penstock::ondevice {
namespace {

using test::stamped;
using test::TempDirectory;

constexpr u32 kPage = 4096;
constexpr u64 kServedBytes = 4 << 20;
constexpr u64 kServedPatience = 60'000'000'000;  // a shared disk may hold a write for many seconds

class BadSystem : public os::System {
  public:
    ssize_t pread(int fd, void* memory, std::size_t bytes, std::uint64_t offset) override {
        const int call = calls++;
        while (hold) std::this_thread::yield();
        if (interrupt && call % 2 == 0) return errno = EINTR, -1;
        if (offset <= bad && bad < offset + bytes) return errno = EIO, -1;
        return System::pread(fd, memory, interrupt ? std::min<std::size_t>(bytes, 1000) : bytes, offset);
    }
    ssize_t pwrite(int fd, const void* memory, std::size_t bytes, std::uint64_t offset) override {
        if (full) return errno = ENOSPC, -1;
        return System::pwrite(fd, memory, bytes, offset);
    }
    int fdatasync(int fd) override { return ++syncs, fail_sync ? (errno = EIO, -1) : System::fdatasync(fd); }
    std::atomic<int> calls{0}, syncs{0};
    bool interrupt = false, full = false, fail_sync = false;
    std::atomic<bool> hold{false};
    std::uint64_t bad = UINT64_MAX;
};

class ServiceTest : public testing::Test {
  protected:
    void SetUp() override {
        test::write_file(name_, stamped(kServedBytes));
        file_ = std::make_unique<OpenedFile>(name_);
    }
    void start(ServiceOptions options = {}, u32 slots = 64, u32 slot_bytes = kPage) {
        service_.reset();
        mailbox_ = std::make_unique<Mailbox>(memory_, memory_, MailboxSizes{slots, slot_bytes});
        options.system = &system_;
        service_ = std::make_unique<Service>(*mailbox_, std::vector<FileSet>{&file_->handle}, options);
    }
    Status ask(const Request& request, void* data = nullptr) {
        MailboxRef<Native> warp = mailbox_->ref();
        u32 ticket = 0;
        if (const Status sent = warp.claim(ticket); sent != Status::ok) return sent;
        if (request.operation == RequestOperation::write) std::memcpy(warp.slot_data(ticket), data, request.bytes);
        if (const Status sent = warp.publish(ticket, request); sent != Status::ok) return warp.release(ticket), sent;
        const Status status = warp.wait(ticket, Native::now_ns() + kServedPatience);
        if (status == Status::timed_out) ADD_FAILURE() << "no service answered: " << state_of_slot(warp, ticket);
        if (status == Status::ok && data != nullptr && request.operation == RequestOperation::read) {
            std::memcpy(data, warp.slot_data(ticket), request.bytes);
        }
        warp.release(ticket);
        return status;
    }
    static std::string state_of_slot(const MailboxRef<Native>& warp, u32 ticket) {
        const u32 slot = slot_of(ticket);
        return "slot " + std::to_string(slot) + ", lap " + std::to_string(lap_of(ticket)) + "; posted lap " +
               std::to_string(mailbox_lap(warp.descriptors[slot].rest)) + ", completed lap " +
               std::to_string(lap_of(warp.completions[slot]));
    }
    static Request read(u64 offset, u32 bytes = kPage) { return {offset, 0, bytes, 0, RequestOperation::read, 0}; }
    static Request write(u64 offset, u32 bytes = kPage) { return {offset, 0, bytes, 0, RequestOperation::write, 0}; }
    bool reads_right(u64 offset, u32 bytes = kPage) {
        std::vector<unsigned char> got(bytes);
        return ask(read(offset, bytes), got.data()) == Status::ok && got == stamped(bytes, offset);
    }
    u64 served(Source source) const {
        return service_->evidence().by_source[static_cast<std::size_t>(source)].requests;
    }

    TempDirectory directory_;
    const std::string name_ = directory_.file("data.bin");
    BadSystem system_;
    RigMemory memory_;
    std::unique_ptr<OpenedFile> file_;
    std::unique_ptr<Mailbox> mailbox_;
    std::unique_ptr<Service> service_;
};

TEST_F(ServiceTest, what_is_cached_comes_from_the_mapping) {
    start();
    for (u64 page : {0, 7, 1023}) EXPECT_TRUE(reads_right(page * kPage));
    EXPECT_TRUE(reads_right(12345, 777));
    EXPECT_EQ(served(Source::mapping), 4u);
    EXPECT_EQ(served(Source::direct), 0u);
}

TEST_F(ServiceTest, what_is_not_cached_goes_past_the_cache_and_stays_out_of_it) {
    if (!made_cold(name_) || file_->handle.direct_fd < 0)
        GTEST_SKIP() << "this file cannot be cold, or has no O_DIRECT";
    start();
    for (u64 page : {3, 512, 1000}) EXPECT_TRUE(reads_right(page * kPage));
    EXPECT_EQ(served(Source::direct), 3u);
    const std::string by = service_->evidence().direct_by;
    EXPECT_FALSE(by.empty());
    if (::geteuid() == 0) {
        EXPECT_EQ(by.find("registered buffers"), std::string::npos) << by;
    }
    EXPECT_EQ(os::residency(file_->handle.buffered_fd, 0, kServedBytes).resident_pages, 0u);
    EXPECT_TRUE(reads_right(100, 50)) << "unaligned: through the cache";
    EXPECT_EQ(served(Source::buffered), 1u);
}

TEST_F(ServiceTest, large_requests_of_all_threads_are_all_answered_and_right) {
    constexpr u32 kLarge = 64 * 1024;
    static_assert(kServedBytes % kLarge == 0);
    if (!made_cold(name_) || file_->handle.direct_fd < 0)
        GTEST_SKIP() << "this file cannot be cold, or has no O_DIRECT";
    ServiceOptions options;
    options.threads = 4;
    options.spin_us = 1;
    start(options, 16, kLarge);
    std::atomic<int> wrong{0};
    const auto client = [&](unsigned seed) {
        for (u64 n = 0; n < 150; ++n) {
            wrong += reads_right((n * 7 + seed) * 31 % (kServedBytes / kLarge) * kLarge, kLarge) ? 0 : 1;
            if (n % 16 == seed) std::this_thread::sleep_for(std::chrono::microseconds(300));  // some threads sleep
        }
    };
    std::vector<std::thread> clients;
    for (unsigned i = 0; i < 6; ++i) clients.emplace_back(client, i);
    for (std::thread& one : clients) one.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(served(Source::direct), 6u * 150u);
}

TEST_F(ServiceTest, sources_that_are_switched_off_are_not_used) {
    ServiceOptions options;
    options.mappings = options.direct = false;
    start(options);
    EXPECT_TRUE(reads_right(8192));
    EXPECT_EQ(served(Source::buffered), 1u);
    EXPECT_TRUE(service_->evidence().direct_by.empty());
}

TEST_F(ServiceTest, wrong_requests_are_told_what_is_wrong) {
    std::vector<unsigned char> data(kPage);
    start();
    EXPECT_EQ(ask(read(kServedBytes)), Status::out_of_range);
    EXPECT_EQ(ask(read(kServedBytes - 1, 2)), Status::out_of_range);
    EXPECT_EQ(ask(read(~0ull - 100)), Status::out_of_range);
    EXPECT_EQ(ask(read(0, 0)), Status::invalid);
    EXPECT_EQ(ask({0, 0, kPage, 1, RequestOperation::read, 0}), Status::invalid) << "no such file";
    EXPECT_EQ(ask(read(0, kPage + 1)), Status::invalid) << "larger than a slot";
    for (const Request& right : {read(kServedBytes - kPage), read(kServedBytes - 1, 1), write(kServedBytes - kPage)})
        EXPECT_EQ(ask(right, data.data()), Status::ok) << "control at " << right.offset_bytes;
    file_ = std::make_unique<OpenedFile>(name_, O_RDONLY);
    start();
    EXPECT_EQ(ask(write(0), data.data()), Status::read_only);
    EXPECT_EQ(service_->evidence().failed, 1u);
    EXPECT_TRUE(reads_right(0));
}

TEST_F(ServiceTest, writes_arrive_and_a_flush_syncs) {
    start();
    std::vector<unsigned char> data(kPage, 0xAB);
    ASSERT_EQ(ask(write(5 * kPage), data.data()), Status::ok);
    ASSERT_EQ(ask({0, 0, 0, 0, RequestOperation::flush, 0}), Status::ok);
    EXPECT_EQ(system_.syncs, 1);
    auto expected = stamped(kServedBytes);
    std::copy(data.begin(), data.end(), expected.begin() + 5 * kPage);
    EXPECT_EQ(test::read_file(name_), expected);
}

// The system reports lost bytes to one sync and forgets them: the next sync does not prove that they are there.
TEST_F(ServiceTest, a_sync_that_failed_is_never_good_again) {
    const Request flush{0, 0, 0, 0, RequestOperation::flush, 0};
    start();
    system_.fail_sync = true;
    EXPECT_EQ(ask(flush), Status::io_error);
    system_.fail_sync = false;
    EXPECT_EQ(ask(flush), Status::io_error);
    EXPECT_EQ(system_.syncs, 2) << "what was written since is synced all the same";
    const auto failures = service_->failures_since(0);
    ASSERT_EQ(failures.size(), service_->failures());
    ASSERT_FALSE(failures.empty());
    EXPECT_EQ(failures[0].system_code, EIO);
    EXPECT_TRUE(reads_right(0));
    start();
    EXPECT_EQ(ask(flush), Status::ok) << "opened again";
}

TEST_F(ServiceTest, bad_days_end_in_a_status) {
    ServiceOptions options;
    options.mappings = options.direct = false;
    system_.interrupt = true;
    start(options);
    EXPECT_TRUE(reads_right(0)) << "interruptions and short counts are healed";
    system_.interrupt = false;
    system_.bad = 3 * kPage + 5;
    EXPECT_EQ(ask(read(3 * kPage)), Status::io_error);
    EXPECT_TRUE(reads_right(4 * kPage));
    std::vector<unsigned char> data(kPage);
    for (const bool full : {true, false}) {
        system_.full = full;
        EXPECT_EQ(ask(write(0), data.data()), full ? Status::io_error : Status::ok) << "a disk that is full, or not";
    }
}

TEST_F(ServiceTest, a_file_cut_short_underneath_is_a_status_by_every_source) {
    for (const bool mappings : {true, false}) {
        test::write_file(name_, stamped(kServedBytes));
        ServiceOptions options;
        options.mappings = mappings;
        start(options);
        ASSERT_TRUE(reads_right(kServedBytes - kPage));
        std::filesystem::resize_file(name_, kPage);
        EXPECT_EQ(ask(read(kServedBytes - kPage)), Status::truncated);
        EXPECT_TRUE(reads_right(0));
    }
}

// The mapping has zeros between the end of the file and the end of the system's page. They are not the file's bytes.
TEST_F(ServiceTest, a_page_that_the_file_was_cut_within_is_no_page_of_zeros) {
    for (const u32 bytes : {512u, kPage}) {
        test::write_file(name_, stamped(kServedBytes));
        start({}, 64, bytes);
        std::filesystem::resize_file(name_, 5 * kPage + 700);
        EXPECT_EQ(ask(read(5 * kPage + 512 / bytes * 512, bytes)), Status::truncated) << bytes;
        EXPECT_EQ(served(Source::mapping), 0u);
        EXPECT_TRUE(reads_right(4 * kPage, bytes));
    }
}

TEST_F(ServiceTest, zeros_of_the_file_come_from_the_mapping) {
    test::write_file(name_, std::vector<unsigned char>(kServedBytes));
    start();
    std::vector<unsigned char> got(kPage, 1);
    EXPECT_EQ(ask(read(kServedBytes - kPage), got.data()), Status::ok);
    EXPECT_EQ(got, std::vector<unsigned char>(kPage));
    EXPECT_EQ(served(Source::mapping), 1u);
}

// By default the system sends a signal for such a write, which ends the process.
TEST_F(ServiceTest, a_limit_of_file_sizes_is_a_status) {
    EXPECT_EXIT(
        {
            ::signal(SIGXFSZ, SIG_DFL);
            rlimit limit{};
            limit.rlim_cur = limit.rlim_max = kServedBytes / 2;
            ::setrlimit(RLIMIT_FSIZE, &limit);
            std::vector<unsigned char> data(kPage, 1);
            start();
            const bool told = ask(write(kServedBytes - kPage), data.data()) == Status::io_error &&
                              ask(write(0), data.data()) == Status::ok;
            ::_exit(told ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
}

// The system holds the first request, and the second waits behind it, when the service is told to end.
TEST_F(ServiceTest, its_end_completes_what_was_begun_and_cancels_the_rest) {
    ServiceOptions options;
    options.threads = 1;
    options.mappings = options.direct = false;
    start(options);
    system_.hold = true;
    MailboxRef<Native> warp = mailbox_->ref();
    u32 first = 0, second = 0;
    ASSERT_EQ(warp.submit(read(0), first), Status::ok);
    while (system_.calls == 0) std::this_thread::yield();
    ASSERT_EQ(warp.submit(read(kPage), second), Status::ok);
    std::thread end([&] { service_.reset(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(warp.test(first), Status::pending);
    system_.hold = false;
    end.join();
    EXPECT_EQ(warp.test(first), Status::ok);
    EXPECT_EQ(warp.test(second), Status::cancelled);
    warp.release(first);
    warp.release(second);
}

TEST_F(ServiceTest, what_nobody_served_the_next_service_does) {
    start();
    service_.reset();
    MailboxRef<Native> warp = mailbox_->ref();
    u32 ticket = 0;
    ASSERT_EQ(warp.submit(read(0), ticket), Status::ok);
    EXPECT_EQ(warp.test(ticket), Status::pending);
    const Service next(*mailbox_, {&file_->handle}, {});
    EXPECT_EQ(warp.wait(ticket, Native::now_ns() + kServedPatience), Status::ok);
    warp.release(ticket);
}

TEST_F(ServiceTest, sleeps_when_there_is_nothing_to_do) {
    start();
    EXPECT_TRUE(reads_right(0));
    const auto busy = [](int milliseconds) {
        const std::clock_t before = std::clock();  // the process's CPU time
        std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
        return static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
    };
    static_cast<void>(busy(20));
    EXPECT_LT(busy(250), 0.25) << "of 1 s of four threads";
    EXPECT_LT(busy(500), 0.05) << "of 2 s of four threads that had no work for long";
    EXPECT_TRUE(reads_right(kPage)) << "and wakes";
}

TEST_F(ServiceTest, cannot_begin_without_files_threads_or_slots_for_them) {
    Mailbox mailbox(memory_, memory_, {2, kPage});
    ServiceOptions options;
    EXPECT_THROW(Service(mailbox, {}, options), Error);
    options.threads = 0;
    EXPECT_THROW(Service(mailbox, {&file_->handle}, options), Error);
    options.threads = 3;
    EXPECT_THROW(Service(mailbox, {&file_->handle}, options), Error);
}

// Warps keep several requests under way, over a file of which half is cached.
TEST_F(ServiceTest, many_warps_read_and_write_their_own_pages_right) {
    os::drop_cache(os::real_system(), file_->handle.buffered_fd, name_, {0, kServedBytes / 2});
    ServiceOptions options;
    options.threads = 3;
    start(options, 16);
    constexpr u64 kWarps = 8, kPages = kServedBytes / kPage;
    std::atomic<int> wrong{0};
    std::vector<std::thread> warps;
    for (u64 warp = 0; warp < kWarps; ++warp) {
        warps.emplace_back([&, warp] {
            std::mt19937_64 random(warp);
            std::vector<unsigned char> got(kPage);
            for (int turn = 0; turn < 300; ++turn) {
                const u64 page = random() % (kPages / kWarps) * kWarps + warp;
                auto expected = stamped(kPage, page * kPage);
                Status status = Status::busy;
                if (turn % 4 == 0) {
                    while (status == Status::busy) status = ask(write(page * kPage), expected.data());
                } else {
                    while (status == Status::busy) status = ask(read(page * kPage), got.data());
                    if (got != expected) ++wrong;
                }
                if (status != Status::ok) ++wrong;
            }
        });
    }
    for (std::thread& warp : warps) warp.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(test::read_file(name_), stamped(kServedBytes));
    const ServiceEvidence evidence = service_->evidence();
    u64 all = 0;
    for (const ServedCount& one : evidence.by_source) all += one.requests;
    EXPECT_EQ(all, kWarps * 300);
    EXPECT_EQ(evidence.failed, 0u);
}

}  // namespace
}  // namespace penstock::ondevice
