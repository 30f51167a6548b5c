// Medium reads of what is not in the page cache, by the thread that waits: which requests go so, and what they do with
// interruptions, bad blocks, the end of the file and file systems that refuse O_DIRECT after all.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <thread>
#include <tuple>

#include "context/seams.hpp"
#include "context/test_files.hpp"
#include "os/system.hpp"
#include "penstock/context.hpp"
#include "penstock/profile.hpp"

namespace penstock {
namespace {

using test::fetch;
using test::stamped;
using test::TempDirectory;
using test::write_file;

constexpr std::uint64_t kReadBytes = 256 * kKiB;

// Reads of O_DIRECT descriptors fail as told.
class BadSystem : public os::System {
  public:
    ssize_t pread(int fd, void* memory, std::size_t bytes, std::uint64_t offset) override {
        if ((::fcntl(fd, F_GETFL) & O_DIRECT) == 0) return System::pread(fd, memory, bytes, offset);
        const int call = direct_reads++;
        if (failure != 0 && call >= good_calls && (always || call % 2 == 0)) {
            errno = failure;
            return -1;
        }
        if (step_bytes != 0) bytes = std::min(bytes, step_bytes);
        return System::pread(fd, memory, bytes, offset);
    }
    std::atomic<int> direct_reads{0};
    int failure = 0, good_calls = 0;
    bool always = true;
    std::size_t step_bytes = 0;
};

class DirectOnCaller : public testing::Test {
  protected:
    void SetUp() override {
        write_file(directory_.file("data"), stamped(kMiB + 100));
        file_.emplace(context_.open(directory_.file("data")));
        if (!file_->facts().direct) GTEST_SKIP() << "no O_DIRECT here: " << file_->facts().direct_cause;
    }
    Outcome read(std::uint64_t offset, std::uint64_t bytes, bool strict = false) {
        TransferOptions options;
        options.path = PathKind::direct;
        options.strict = strict;
        return file_->read(buffer_.view().slice(0, bytes), offset, options);
    }
    bool holds(std::uint64_t offset, std::uint64_t bytes) {
        return fetch(context_, buffer_.data(), bytes) == stamped(bytes, offset);
    }
    BadSystem system_;
    TempDirectory directory_;
    Context context_ = context::make_context({.device = "host"}, {.system = &system_});
    Buffer buffer_ = context_.allocate(kMiB);
    std::optional<File> file_;
};

TEST_F(DirectOnCaller, one_operation_brings_what_is_aligned) {
    const Outcome outcome = read(8192, kReadBytes);
    ASSERT_TRUE(outcome.ok()) << outcome.error.message();
    EXPECT_EQ(system_.direct_reads, 1);
    EXPECT_EQ(outcome.evidence.path_name(), "direct");
    EXPECT_TRUE(holds(8192, kReadBytes));
    EXPECT_EQ(read(100, kReadBytes).bytes, kReadBytes);  // unaligned: by workers, right all the same
    EXPECT_TRUE(holds(100, kReadBytes));
}

TEST_F(DirectOnCaller, is_for_a_caller_who_waits) {
    TransferOptions options;
    options.path = PathKind::direct;
    const auto runs_inline = [](const Transfer& transfer) {
        static_cast<void>(transfer.result());
        return transfer.plan().steps.at(0).shape.run_inline;
    };
    EXPECT_FALSE(runs_inline(file_->start_read(buffer_.view().slice(0, kReadBytes), 0, options)));
    options.caller_waits = true;
    EXPECT_TRUE(runs_inline(file_->start_read(buffer_.view().slice(0, kReadBytes), 0, options)));
    EXPECT_FALSE(runs_inline(file_->start_read(buffer_.view(), 0, options))) << "larger than a lane's slot";
    options.workers = 2;
    EXPECT_FALSE(runs_inline(file_->start_read(buffer_.view().slice(0, kReadBytes), 0, options)));
}

TEST_F(DirectOnCaller, interruptions_and_short_counts_are_healed) {
    system_.failure = EINTR;
    system_.always = false;
    system_.step_bytes = 16 * kKiB;
    ASSERT_EQ(read(0, kReadBytes).bytes, kReadBytes);
    EXPECT_GE(system_.direct_reads, 31);
    EXPECT_TRUE(holds(0, kReadBytes));
}

TEST_F(DirectOnCaller, a_bad_block_is_an_error_with_its_place) {
    system_.failure = EIO;
    system_.good_calls = 1;
    system_.step_bytes = 64 * kKiB;
    const Outcome outcome = read(0, kReadBytes);
    EXPECT_EQ(outcome.error.code, ErrorCode::io_error);
    EXPECT_EQ(outcome.error.offset_bytes, 64 * kKiB);
    EXPECT_EQ(outcome.bytes, 64 * kKiB);
    EXPECT_TRUE(holds(0, 64 * kKiB));
}

TEST_F(DirectOnCaller, a_refusal_falls_back_on_record_or_fails_when_strict) {
    system_.failure = EINVAL;
    system_.good_calls = 1;
    system_.step_bytes = 64 * kKiB;
    const Outcome outcome = read(0, kReadBytes);
    ASSERT_TRUE(outcome.ok()) << outcome.error.message();
    ASSERT_EQ(outcome.evidence.fallbacks.size(), 1u);
    EXPECT_EQ(outcome.evidence.fallbacks[0].took, PathKind::buffered);
    EXPECT_EQ(outcome.evidence.fallbacks[0].bytes, kReadBytes - 64 * kKiB);
    EXPECT_TRUE(holds(0, kReadBytes));
    EXPECT_EQ(read(0, kReadBytes, true).error.code, ErrorCode::fallback_refused);
}

TEST_F(DirectOnCaller, a_file_cut_short_ends_the_read) {
    std::filesystem::resize_file(directory_.file("data"), 100'000);
    const Outcome outcome = read(65536, kReadBytes);
    EXPECT_TRUE(outcome.ok());
    EXPECT_EQ(outcome.bytes, 100'000u - 65536u);
    EXPECT_TRUE(outcome.reached_end);
    EXPECT_TRUE(holds(65536, outcome.bytes));
}

TEST_F(DirectOnCaller, more_callers_than_lanes_take_turns) {
    constexpr int kCallers = 40;
    const Buffer all = context_.allocate(kCallers * 64 * kKiB);
    std::atomic<int> right{0};
    std::vector<std::thread> callers;
    for (std::uint64_t i = 0; i < kCallers; ++i) {
        callers.emplace_back([&, i] {
            TransferOptions options;
            options.path = PathKind::direct;
            const MemoryView part = all.view().slice(i * 64 * kKiB, 64 * kKiB);
            for (std::uint64_t turn = 0; turn < 16; ++turn) {
                const std::uint64_t offset = (i + turn) % 16 * 64 * kKiB;
                if (!file_->read(part, offset, options).ok()) continue;
                right += fetch(context_, part.data, 64 * kKiB) == stamped(64 * kKiB, offset);
            }
        });
    }
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(right, kCallers * 16);
}

// A profile of this machine and of the folder's file system: cold reads of 64 KiB are faster past the cache.
std::string profile_of(const TempDirectory& directory) {
    ContextOptions options;
    options.device = "host";
    Profile profile = Context(options).identity(directory.path());
    for (const auto& [path, cached, seconds] : {std::tuple{PathKind::buffered, true, 1e-5},
                                                {PathKind::buffered, false, 1e-4},
                                                {PathKind::direct, true, 5e-5},
                                                {PathKind::direct, false, 5e-5}}) {
        ProfileRow row;
        row.path = path;
        row.cached = cached;
        row.bytes = 64 * kKiB;
        row.seconds = seconds;
        row.samples = 5;
        profile.rows.push_back(row);
    }
    std::ofstream(directory.file("machine.csv")) << profile_text(profile);
    return directory.file("machine.csv");
}

TEST(DirectOnCallerByProfile, small_reads_go_past_the_cache_only_when_they_are_not_in_it) {
    const TempDirectory directory;
    write_file(directory.file("data"), stamped(kMiB));
    ContextOptions options;
    options.device = "host";
    options.profiles = {profile_of(directory)};
    const Context context{options};
    const File file = context.open(directory.file("data"));
    if (!file.facts().direct) GTEST_SKIP() << "no O_DIRECT here: " << file.facts().direct_cause;
    const Buffer buffer = context.allocate(kMiB);
    const MemoryView part = buffer.view().slice(0, 64 * kKiB);
    const auto cold = [&] { file.drop_cache(0, 0); return file.residency(0, kMiB).resident_pages == 0; };
    if (!cold()) GTEST_SKIP() << "this file system keeps its files in memory";
    EXPECT_EQ(file.read(part, 0).evidence.path_name(), "direct");
    EXPECT_TRUE(fetch(context, part.data, 64 * kKiB) == stamped(64 * kKiB));
    EXPECT_EQ(file.residency(0, kMiB).resident_pages, 0u);
    EXPECT_EQ(file.read(part.slice(0, 4096), 0).evidence.path_name(), "buffered") << "not asked";
    TransferOptions through;
    through.path = PathKind::buffered;
    ASSERT_TRUE(file.read(part, 128 * kKiB, through).ok());
    EXPECT_EQ(file.read(part, 128 * kKiB).evidence.path_name(), "buffered") << "it is there now";
}

TEST(DirectOnCallerBudget, lanes_are_part_of_it) {
    TempDirectory directory;
    write_file(directory.file("data"), stamped(kMiB));
    ContextOptions options;
    options.device = "host";
    options.budget_bytes = 8 * kMiB;  // too little for lanes of their own
    const Context context{options};
    const File file = context.open(directory.file("data"));
    if (!file.facts().direct) GTEST_SKIP() << "no O_DIRECT here: " << file.facts().direct_cause;
    const Buffer buffer = context.allocate(kMiB);
    TransferOptions by;
    by.path = PathKind::direct;
    by.caller_waits = true;
    const Transfer read = file.start_read(buffer.view().slice(0, kReadBytes), 0, by);
    EXPECT_TRUE(read.result().ok());
    EXPECT_FALSE(read.plan().steps.at(0).shape.run_inline);
    EXPECT_LE(read.result().evidence.pinned_peak_bytes, 8 * kMiB);
}

}  // namespace
}  // namespace penstock
