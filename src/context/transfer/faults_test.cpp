// Bad days: short counts, EINTR, EIO, ENOSPC, lost completions, refusing file systems. Each ends clearly and in time,
// and each way of failing is shown to be able to fail the check that guards against it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "context/seams.hpp"
#include "context/test_files.hpp"
#include "os/system.hpp"
#include "penstock/context.hpp"
#include "support/decorators/fault.hpp"

namespace penstock {
namespace {

using test::TempDirectory;
using test::fetch;
using test::stamped;
using test::write_file;

// System calls that fail on a schedule. Counts calls so that a test can see that it was reached.
class BadSystem : public os::System {
  public:
    ssize_t pread(int fd, void* memory, std::size_t bytes, std::uint64_t offset) override {
        const int call = reads++;
        if (interrupt_every != 0 && call % interrupt_every == 0) return fail(EINTR);
        if (short_every != 0 && call % short_every == 0) bytes = std::max<std::size_t>(bytes / 3, 1);
        bytes = std::min(bytes, most_bytes);
        if (offset + bytes > bad_from && offset < bad_to) return fail(EIO);
        if (fd == refuse_fd) return fail(EINVAL);
        return System::pread(fd, memory, bytes, offset);
    }
    ssize_t pwrite(int fd, const void* memory, std::size_t bytes, std::uint64_t offset) override {
        const int call = writes++;
        if (interrupt_every != 0 && call % interrupt_every == 0) return fail(EINTR);
        if (offset + bytes > full_from) return fail(ENOSPC);
        if (short_every != 0 && call % short_every == 0) bytes = std::max<std::size_t>(bytes / 3, 1);
        return System::pwrite(fd, memory, bytes, offset);
    }
    int fdatasync(int fd) override { return fail_sync ? static_cast<int>(fail(EIO)) : System::fdatasync(fd); }
    int fallocate(int fd, std::uint64_t offset, std::uint64_t bytes) override {
        return fail_reserve ? static_cast<int>(fail(ENOSPC)) : System::fallocate(fd, offset, bytes);
    }
    std::atomic<int> reads{0}, writes{0};
    int interrupt_every = 0, short_every = 0, refuse_fd = -2;
    std::size_t most_bytes = SIZE_MAX;  // of one read
    std::uint64_t bad_from = UINT64_MAX, bad_to = UINT64_MAX, full_from = UINT64_MAX;
    bool fail_sync = false, fail_reserve = false;

  private:
    static ssize_t fail(int number) {
        errno = number;
        return -1;
    }
};

class Faults : public testing::Test {
  protected:
    Context make(std::function<std::unique_ptr<Path>(std::unique_ptr<Path>)> wrap = {}) {
        return context::make_context({.device = "host"}, {.system = &system_, .wrap_path = std::move(wrap)});
    }
    static TransferOptions by(PathKind path) {
        TransferOptions options;
        options.path = path;
        return options;
    }
    BadSystem system_;
    TempDirectory directory_;
};

TEST_F(Faults, short_counts_and_interruptions_are_healed) {
    system_.interrupt_every = 3;
    system_.short_every = 2;
    const Context context = make();
    write_file(directory_.file("data"), stamped(3 * kMiB + 11));
    const File file = context.open(directory_.file("data"));
    const Buffer buffer = context.allocate(4 * kMiB);
    for (std::uint64_t bytes : {3 * kMiB + 11, std::uint64_t{5000}}) {  // by workers and on the calling thread
        const Outcome outcome = file.read(buffer.view().slice(0, bytes), 0, by(PathKind::buffered));
        ASSERT_TRUE(outcome.ok()) << outcome.error.message();
        EXPECT_TRUE(fetch(context, buffer.data(), bytes) == stamped(bytes));
    }
    EXPECT_GT(system_.reads.load(), 10);
}

TEST_F(Faults, interruptions_between_which_bytes_move_end_no_transfer) {
    system_.interrupt_every = 2;
    system_.most_bytes = 512;
    const Context context = make();
    write_file(directory_.file("data"), stamped(256 * kKiB));
    const File file = context.open(directory_.file("data"));
    const Buffer buffer = context.allocate(256 * kKiB);
    TransferOptions options = by(PathKind::buffered);
    options.chunk_bytes = 256 * kKiB;
    const Outcome outcome = file.read(buffer.view(), 0, options);
    ASSERT_TRUE(outcome.ok()) << outcome.error.message();
    EXPECT_TRUE(fetch(context, buffer.data(), 256 * kKiB) == stamped(256 * kKiB));
}

TEST_F(Faults, every_path_survives_a_fault_decorator_that_keeps_to_the_contract) {
    path::FaultOptions faults;
    faults.seed = 3;
    faults.short_count = faults.interrupted = faults.again = 0.2;
    faults.delayed = 0.1;
    const Context context = make([&](std::unique_ptr<Path> path) { return path::faulty(std::move(path), faults); });
    write_file(directory_.file("data"), stamped(6 * kMiB + 123));
    const Buffer buffer = context.allocate(8 * kMiB);
    for (PathKind path : {PathKind::buffered, PathKind::direct, PathKind::aio, PathKind::uring, PathKind::mmap}) {
        File file = context.open(directory_.file("data"), {.mode = OpenMode::read_write});
        TransferOptions options = by(path);
        options.chunk_bytes = 128 * kKiB;
        const Outcome read = file.read(buffer.view().slice(0, 6 * kMiB), 100, options);
        ASSERT_TRUE(read.ok()) << to_string(path) << ": " << read.error.message();
        EXPECT_TRUE(fetch(context, buffer.data(), 6 * kMiB) == stamped(6 * kMiB, 100)) << to_string(path);
        const Outcome write = file.write(buffer.view().slice(0, 6 * kMiB), 100, options);
        ASSERT_TRUE(write.ok()) << to_string(path) << ": " << write.error.message();
        file.close();
        EXPECT_TRUE(test::read_file(directory_.file("data")) == stamped(6 * kMiB + 123)) << to_string(path);
    }
}

TEST_F(Faults, a_corrupting_path_is_noticed_by_the_check_these_tests_use) {  // negative control
    path::FaultOptions faults;
    faults.script = {{0, path::FaultKind::corrupt}};
    const Context context = make([&](std::unique_ptr<Path> path) { return path::faulty(std::move(path), faults); });
    write_file(directory_.file("data"), stamped(2 * kMiB));
    const File file = context.open(directory_.file("data"));
    const Buffer buffer = context.allocate(2 * kMiB);
    ASSERT_TRUE(file.read(buffer.view(), 0, by(PathKind::buffered)).ok());
    EXPECT_FALSE(fetch(context, buffer.data(), 2 * kMiB) == stamped(2 * kMiB));
}

TEST_F(Faults, an_error_in_the_middle_names_file_and_offset_and_the_bytes_before_it_count) {
    system_.bad_from = 2 * kMiB;
    const Context context = make();
    write_file(directory_.file("data"), stamped(4 * kMiB));
    const File file = context.open(directory_.file("data"));
    const Buffer buffer = context.allocate(4 * kMiB);
    TransferOptions options = by(PathKind::buffered);
    options.workers = 1;
    options.chunk_bytes = 256 * kKiB;
    const Outcome outcome = file.read(buffer.view(), 0, options);
    EXPECT_EQ(outcome.error.code, ErrorCode::io_error);
    EXPECT_EQ(outcome.error.system_code, EIO);
    EXPECT_EQ(outcome.error.offset_bytes, 2 * kMiB);
    EXPECT_EQ(outcome.error.file, directory_.file("data"));
    EXPECT_EQ(outcome.bytes, 2 * kMiB);
    EXPECT_TRUE(fetch(context, buffer.data(), 2 * kMiB) == stamped(2 * kMiB));
}

TEST_F(Faults, a_full_disk_at_the_last_byte_fails_the_write_and_leaves_no_new_file) {
    system_.full_from = 2 * kMiB - 1;
    const Context context = make();
    const Buffer buffer = context.allocate(2 * kMiB);
    {
        File file = context.open(directory_.file("new"), {.mode = OpenMode::create});
        const Transfer transfer = file.start_write(buffer.view(), 0, by(PathKind::buffered));
        transfer.wait();
        try {
            file.close();  // no caller has asked for the outcome: it surfaces here
            FAIL() << "a lost write error";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::no_space) << error.what();
        }
    }
    EXPECT_FALSE(std::filesystem::exists(directory_.file("new")));
    EXPECT_EQ(directory_.entries(), 0u);
}

TEST_F(Faults, reserving_more_than_there_is_fails_at_once) {
    system_.fail_reserve = true;
    const Context context = make();
    try {
        context.open(directory_.file("new"), {.mode = OpenMode::create, .size_bytes = 1 * kMiB});
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::no_space);
    }
    EXPECT_EQ(directory_.entries(), 0u);
}

TEST_F(Faults, a_failed_sync_fails_a_durable_write) {
    system_.fail_sync = true;
    const Context context = make();
    write_file(directory_.file("data"), stamped(1 * kMiB));
    const File file = context.open(directory_.file("data"), {.mode = OpenMode::read_write});
    const Buffer buffer = context.allocate(1 * kMiB);
    TransferOptions options = by(PathKind::buffered);
    EXPECT_TRUE(file.write(buffer.view(), 0, options).ok());  // negative control: no durability, no sync
    options.durable = true;
    EXPECT_EQ(file.write(buffer.view(), 0, options).error.code, ErrorCode::io_error);
}

TEST_F(Faults, o_direct_refused_at_transfer_falls_back_on_record_or_fails_when_strict) {
    const Context context = make();
    write_file(directory_.file("data"), stamped(2 * kMiB));
    const File file = context.open(directory_.file("data"));
    if (!file.facts().direct) GTEST_SKIP() << "no O_DIRECT here: " << file.facts().direct_cause;
    const Buffer buffer = context.allocate(2 * kMiB);
    // The O_DIRECT descriptor is the one opened last: the highest number.
    for (int fd = 0; fd < 100; ++fd) {
        if (::fcntl(fd, F_GETFL) >= 0 && (::fcntl(fd, F_GETFL) & O_DIRECT) != 0) system_.refuse_fd = fd;
    }
    const Outcome outcome = file.read(buffer.view(), 0, by(PathKind::direct));
    ASSERT_TRUE(outcome.ok()) << outcome.error.message();
    ASSERT_EQ(outcome.evidence.fallbacks.size(), 1u);
    EXPECT_EQ(outcome.evidence.fallbacks[0].took, PathKind::buffered);
    EXPECT_EQ(outcome.evidence.fallbacks[0].bytes, 2 * kMiB);
    EXPECT_EQ(outcome.evidence.path_name(), "buffered");
    EXPECT_TRUE(fetch(context, buffer.data(), 2 * kMiB) == stamped(2 * kMiB));
    TransferOptions strict = by(PathKind::direct);
    strict.strict = true;
    EXPECT_EQ(file.read(buffer.view(), 0, strict).error.code, ErrorCode::fallback_refused);
}

TEST_F(Faults, unaligned_edges_of_a_direct_write_are_on_record_or_refused_when_strict) {
    const Context context = make();
    write_file(directory_.file("data"), stamped(2 * kMiB));
    const File file = context.open(directory_.file("data"), {.mode = OpenMode::read_write});
    if (!file.facts().direct) GTEST_SKIP() << "no O_DIRECT here: " << file.facts().direct_cause;
    const Buffer buffer = context.allocate(2 * kMiB);
    const Outcome outcome = file.write(buffer.view().slice(0, 1 * kMiB), 100, by(PathKind::direct));
    ASSERT_TRUE(outcome.ok()) << outcome.error.message();
    ASSERT_EQ(outcome.evidence.fallbacks.size(), 1u);
    EXPECT_EQ(outcome.evidence.path_name(), "mixed");
    TransferOptions strict = by(PathKind::direct);
    strict.strict = true;
    EXPECT_THROW(file.write(buffer.view().slice(0, 1 * kMiB), 100, strict), Error);
    EXPECT_TRUE(file.write(buffer.view().slice(0, 1 * kMiB), 0, strict).ok());  // aligned: nothing to refuse
}

TEST_F(Faults, a_fallback_that_moved_nothing_is_not_on_record) {
    const Context context = make();
    write_file(directory_.file("data"), stamped(2 * kMiB));
    const File file = context.open(directory_.file("data"), {.mode = OpenMode::read_write});
    if (!file.facts().direct) GTEST_SKIP() << "no O_DIRECT here: " << file.facts().direct_cause;
    const Buffer buffer = context.allocate(2 * kMiB);
    system_.full_from = 0;
    const Outcome full = file.write(buffer.view().slice(0, 1 * kMiB), 100, by(PathKind::direct));
    EXPECT_EQ(full.error.code, ErrorCode::no_space);
    EXPECT_TRUE(full.evidence.fallbacks.empty()) << full.evidence.to_json();
    system_.full_from = UINT64_MAX;
    const Outcome fine = file.write(buffer.view().slice(0, 1 * kMiB), 100, by(PathKind::direct));
    ASSERT_EQ(fine.evidence.fallbacks.size(), 1u);  // the two edges
    EXPECT_EQ(fine.evidence.fallbacks[0].bytes, 4096u);
}

TEST_F(Faults, a_lost_completion_ends_at_the_deadline_and_the_worker_survives) {
    std::atomic<bool> loses{true};
    const Context context = make([&](std::unique_ptr<Path> path) {
        path::FaultOptions faults;
        if (loses) faults.script = {{1, path::FaultKind::lose}};
        return path::faulty(std::move(path), faults);
    });
    write_file(directory_.file("data"), stamped(4 * kMiB));
    const File file = context.open(directory_.file("data"));
    const Buffer buffer = context.allocate(4 * kMiB);
    TransferOptions options = by(PathKind::buffered);
    options.workers = 1;
    options.chunk_bytes = 256 * kKiB;
    options.deadline = Deadline::after(std::chrono::milliseconds(100));
    const auto start = Clock::now();
    const Outcome outcome = file.read(buffer.view(), 0, options);
    EXPECT_EQ(outcome.error.code, ErrorCode::timed_out) << outcome.error.message();
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(1));
    loses = false;
    options.deadline = Deadline::never();
    const Outcome next = file.read(buffer.view(), 0, options);  // the only worker comes back from the path that hung
    EXPECT_TRUE(next.ok()) << next.error.message();
}

TEST_F(Faults, a_file_truncated_while_it_is_read_ends_short) {
    for (PathKind path : {PathKind::buffered, PathKind::mmap, PathKind::uring}) {
        ContextOptions slow;
        slow.device = "host";
        slow.host.bandwidth_bytes_per_s = 100e6;
        const Context context(slow);
        const std::string name = directory_.file(std::string("data-") + to_string(path));
        write_file(name, stamped(32 * kMiB));
        const File file = context.open(name);
        const Buffer buffer = context.allocate(32 * kMiB);
        const Transfer transfer = file.start_read(buffer.view(), 0, by(path));
        std::filesystem::resize_file(name, 4 * kMiB);
        const Outcome outcome = transfer.result();
        EXPECT_TRUE(outcome.ok()) << outcome.error.message();
        EXPECT_TRUE(outcome.reached_end) << to_string(path);
        EXPECT_LT(outcome.bytes, 32 * kMiB) << to_string(path);
    }
}

TEST_F(Faults, a_registered_mapping_cut_short_while_it_is_copied_ends_the_transfer_not_the_process) {
    if (!std::filesystem::is_directory("/dev/shm")) GTEST_SKIP() << "no tmpfs at /dev/shm";
    const TempDirectory shared("/dev/shm");
    ContextOptions slow;
    slow.device = "host";
    slow.host.bandwidth_bytes_per_s = 200e6;
    const Context context(slow);
    write_file(shared.file("data"), stamped(64 * kMiB));
    const File file = context.open(shared.file("data"));
    const Buffer buffer = context.allocate(64 * kMiB);
    const Transfer transfer = file.start_read(buffer.view(), 0, by(PathKind::mmap));
    std::this_thread::sleep_for(std::chrono::milliseconds(60));  // the copies are queued; none has moved its bytes
    std::filesystem::resize_file(shared.file("data"), 4096);
    const Outcome outcome = transfer.result();
    EXPECT_LT(outcome.bytes, 64 * kMiB);
    EXPECT_TRUE(outcome.reached_end || outcome.error.code == ErrorCode::device_error) << outcome.error.message();
}

TEST_F(Faults, a_device_out_of_memory_is_an_error_not_a_crash) {
    ContextOptions options;
    options.device = "host";
    options.host.memory_bytes = 1 * kMiB;
    const Context context(options);
    try {
        context.allocate(2 * kMiB);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
    }
}

}  // namespace
}  // namespace penstock
