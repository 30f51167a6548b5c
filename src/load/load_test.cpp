// The load generator on real files: what it counts, what it checks, and how it ends. Also tests what worker.hpp and
// pattern.hpp promise.
#include "load/load.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "context/seams.hpp"
#include "context/test_files.hpp"
#include "load/pattern.hpp"
#include "os/system.hpp"

namespace penstock::load {
namespace {

using test::kSeed;
using test::read_file;
using test::stamped;
using test::TempDirectory;
using test::write_file;

constexpr std::uint64_t kBytes = 4 * kMiB;

class Load : public testing::Test {
  protected:
    Load() : context_(on_host()) { write_file(name_, stamped(kBytes)); }
    static ContextOptions on_host() {
        ContextOptions options;
        options.device = "host";
        return options;
    }
    LoadReport run(const LoadOptions& options, MemoryKind kind = MemoryKind::device) {
        const OpenMode mode = options.read_percent == 100 ? OpenMode::read : OpenMode::read_write;
        const File file = context_.open(name_, {.mode = mode});
        const std::uint64_t span = options.bytes != 0 ? options.bytes : file.size_bytes();
        const Buffer buffer = context_.allocate(memory_needed(options, span), kind);
        return run_load(context_, {&file, 1}, buffer.view(), options);
    }
    void spoil(std::uint64_t offset) {
        auto data = read_file(name_);
        data[offset] ^= 1;
        write_file(name_, data);
    }
    ErrorInfo failure_of(const LoadOptions& options, MemoryKind kind = MemoryKind::device) {
        try {
            run(options, kind);
        } catch (const Error& error) {
            return error.info();
        }
        ADD_FAILURE() << "the run did not fail";
        return {};
    }

    TempDirectory directory_;
    std::string name_ = directory_.file("data");
    Context context_;
};

LoadOptions buffered(std::uint64_t request_bytes, unsigned threads = 2) {
    LoadOptions options;
    options.request_bytes = request_bytes;
    options.threads = threads;
    options.transfer.path = PathKind::buffered;
    return options;
}

TEST_F(Load, in_sequence_reads_every_byte_once_and_says_by_which_path) {
    LoadOptions options = buffered(64 * kKiB, 3);
    options.stamp_seed = kSeed;
    const LoadReport report = run(options);
    EXPECT_EQ(report.bytes, kBytes);
    EXPECT_EQ(report.operations, 64u);
    EXPECT_EQ(report.verified_bytes, kBytes);
    EXPECT_EQ(report.reads.count(), 64u);
    EXPECT_EQ(report.writes.count(), 0u);
    EXPECT_GT(report.seconds, 0);
    EXPECT_LE(static_cast<double>(report.reads.max_ns()) / 1e9, report.seconds);
    ASSERT_EQ(report.path_bytes.size(), 1u);
    EXPECT_EQ(report.path_bytes.at("buffered"), kBytes);
    EXPECT_FALSE(report.reached_limit);
}

struct Way {
    unsigned in_flight;
    unsigned batch;
    CompletionMode completion;
};

TEST_F(Load, one_by_one_in_flight_in_batches_and_by_callback_bring_the_same_bytes) {
    for (const Way way :
         {Way{1, 1, CompletionMode::wait}, Way{8, 1, CompletionMode::wait}, Way{8, 1, CompletionMode::callback},
          Way{1, 1, CompletionMode::callback}, Way{1, 16, CompletionMode::wait}, Way{4, 4, CompletionMode::callback}}) {
        for (const RequestOrder order : {RequestOrder::sequential, RequestOrder::random}) {
            LoadOptions options = buffered(16 * kKiB);
            options.in_flight = way.in_flight;
            options.batch = way.batch;
            options.completion = way.completion;
            options.order = order;
            options.stamp_seed = kSeed;
            const LoadReport report = run(options);
            EXPECT_EQ(report.bytes, kBytes) << way.in_flight << " x " << way.batch;
            EXPECT_EQ(report.operations, 256u);
            EXPECT_EQ(report.submissions, 256u / way.batch);
            EXPECT_EQ(report.reads.count(), report.submissions);
            EXPECT_EQ(report.verified_bytes, kBytes);
        }
    }
}

TEST_F(Load, in_mirrored_memory_each_byte_comes_where_it_lies_in_the_span) {
    LoadOptions options = buffered(64 * kKiB, 3);
    options.mirror = true;
    options.offset = 4096;
    options.bytes = kMiB + 4096;
    options.stamp_seed = kSeed;
    const File file = context_.open(name_);
    const Buffer buffer = context_.allocate(options.bytes);
    const LoadReport report = run_load(context_, {&file, 1}, buffer.view(), options);
    EXPECT_EQ(report.verified_bytes, options.bytes);
    EXPECT_EQ(test::fetch(context_, buffer.data(), options.bytes), stamped(options.bytes, 4096));
}

TEST_F(Load, a_wrong_byte_ends_the_run_and_is_named) {
    spoil(3 * kMiB + 17);
    for (const bool mirror : {false, true}) {
        for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned, MemoryKind::system}) {
            LoadOptions options = buffered(64 * kKiB);
            options.stamp_seed = kSeed;
            options.mirror = mirror;
            const ErrorInfo error = failure_of(options, kind);
            EXPECT_EQ(error.operation, "verify");
            EXPECT_EQ(error.file, name_);
            EXPECT_EQ(error.offset_bytes, 3 * kMiB + 16);
            EXPECT_EQ(error.length_bytes, 8u);
        }
    }
}

// After `true_calls` calls, reports that all bytes were read and writes none.
struct Liar : os::System {
    explicit Liar(int true_calls) : left(true_calls) {}
    ssize_t pread(int fd, void* memory, std::size_t bytes, std::uint64_t offset) override {
        return left-- > 0 ? System::pread(fd, memory, bytes, offset) : static_cast<ssize_t>(bytes);
    }
    std::atomic<int> left;
};

TEST_F(Load, what_requests_that_warm_up_brought_does_not_pass_for_what_never_came) {
    for (const bool mirror : {false, true}) {
        Liar liar(1);
        const Context context = context::make_context(on_host(), {.system = &liar});
        const File file = context.open(name_);
        LoadOptions options = buffered(64 * kKiB, 1);
        options.bytes = options.request_bytes;
        options.warm_requests = 1;
        options.stamp_seed = kSeed;
        options.mirror = mirror;
        const Buffer buffer = context.allocate(memory_needed(options, options.bytes));
        EXPECT_THROW(run_load(context, {&file, 1}, buffer.view(), options), Error);
        EXPECT_EQ(liar.left, -1);
    }
}

TEST_F(Load, only_the_last_of_each_slot_is_checked_when_that_was_asked) {
    LoadOptions options = buffered(64 * kKiB, 2);
    options.in_flight = 4;
    options.check_last = true;
    options.stamp_seed = kSeed;
    const auto part = kBytes / 2;
    EXPECT_EQ(run(options).verified_bytes, 2 * 4 * 64 * kKiB);
    spoil(part / 2);  // read long before the end
    EXPECT_EQ(run(options).bytes, kBytes);
    spoil(kBytes - 1);
    EXPECT_EQ(failure_of(options).operation, "verify");
}

TEST_F(Load, without_a_stamp_nothing_is_checked) {
    spoil(99);
    const LoadReport report = run(buffered(64 * kKiB));
    EXPECT_EQ(report.bytes, kBytes);
    EXPECT_EQ(report.verified_bytes, 0u);
}

TEST_F(Load, writes_leave_the_stamp_in_the_file) {
    for (const bool mirror : {false, true}) {
        for (const MemoryKind kind : {MemoryKind::device, MemoryKind::system}) {
            write_file(name_, std::vector<unsigned char>(kBytes, 1));
            LoadOptions options = buffered(48 * kKiB);
            options.read_percent = 0;
            options.mirror = mirror;
            options.stamp_seed = kSeed;
            options.in_flight = 3;
            const LoadReport report = run(options, kind);
            EXPECT_EQ(report.writes.count(), report.submissions);
            EXPECT_EQ(report.reads.count(), 0u);
            EXPECT_EQ(read_file(name_), stamped(kBytes));
        }
    }
}

TEST_F(Load, a_mix_reads_and_writes_and_every_read_is_right) {
    LoadOptions options = buffered(16 * kKiB);
    options.read_percent = 60;
    options.order = RequestOrder::random;
    options.stamp_seed = kSeed;
    const LoadReport report = run(options);
    EXPECT_GT(report.reads.count(), 0u);
    EXPECT_GT(report.writes.count(), 0u);
    EXPECT_EQ(report.reads.count() + report.writes.count(), report.operations);
    EXPECT_EQ(read_file(name_), stamped(kBytes));
}

TEST_F(Load, unaligned_requests_of_several_sizes_are_right_too) {
    LoadOptions options = buffered(1000);
    options.request_bytes_max = 9000;
    options.request_bytes_step = 500;
    options.order = RequestOrder::random;
    options.unaligned = true;
    options.stamp_seed = kSeed;
    options.in_flight = 4;
    const LoadReport report = run(options);
    EXPECT_EQ(report.verified_bytes, report.bytes);
    EXPECT_GE(report.bytes, kBytes);
}

TEST_F(Load, one_file_for_each_thread_is_read_whole_by_it) {
    write_file(directory_.file("other"), stamped(kMiB));
    const File files[] = {context_.open(name_), context_.open(directory_.file("other"))};
    LoadOptions options = buffered(64 * kKiB);
    options.stamp_seed = kSeed;
    const Buffer buffer = context_.allocate(memory_needed(options, kBytes));
    EXPECT_EQ(run_load(context_, files, buffer.view(), options).bytes, kBytes + kMiB);
}

TEST_F(Load, threads_that_share_the_whole_span_each_read_all_of_it) {
    LoadOptions options = buffered(256 * kKiB, 5);
    options.whole_span = true;
    options.stamp_seed = kSeed;
    EXPECT_EQ(run(options).bytes, 5 * kBytes);
}

TEST_F(Load, the_time_limit_ends_a_run_that_repeats) {
    LoadOptions options = buffered(64 * kKiB);
    options.repeat = true;
    options.seconds = 0.05;
    const LoadReport report = run(options);
    EXPECT_TRUE(report.reached_limit);
    EXPECT_GE(report.seconds, 0.05);
    EXPECT_FALSE(report.cancelled);
    options.seconds = 0;
    EXPECT_EQ(run(options).operations, 2u);  // one for each thread, so that there is always a rate
    options.in_flight = 8;
    EXPECT_EQ(run(options).operations, 16u);
}

TEST_F(Load, a_run_that_is_cancelled_ends_with_what_it_has) {
    std::atomic<bool> cancel{false};
    LoadOptions options = buffered(64 * kKiB);
    options.repeat = true;
    options.seconds = 1000;
    options.in_flight = 4;
    options.cancel = &cancel;
    std::jthread later([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        cancel = true;
    });
    const LoadReport report = run(options);
    EXPECT_TRUE(report.cancelled);
    EXPECT_LT(report.seconds, 900);
}

TEST_F(Load, requests_end_at_their_number_and_warm_ones_are_not_counted) {
    LoadOptions options = buffered(4096, 2);
    options.repeat = true;
    options.requests_per_thread = 1500;
    options.warm_requests = 3;
    const LoadReport report = run(options);
    EXPECT_EQ(report.operations, 3000u);
    EXPECT_EQ(report.reads.count(), 3000u);
}

TEST_F(Load, a_failed_request_ends_the_run_and_says_where) {
    const File file = context_.open(name_);  // for reading only
    LoadOptions options = buffered(64 * kKiB);
    options.read_percent = 0;
    const Buffer buffer = context_.allocate(memory_needed(options, kBytes));
    try {
        run_load(context_, {&file, 1}, buffer.view(), options);
        ADD_FAILURE() << "wrote to a file opened for reading";
    } catch (const Error& error) {
        EXPECT_EQ(error.info().operation, "write");
        EXPECT_EQ(error.info().file, name_);
    }
}

TEST_F(Load, a_file_that_became_shorter_ends_the_run) {
    const File file = context_.open(name_);
    LoadOptions options = buffered(64 * kKiB, 1);
    options.bytes = kBytes;
    const Buffer buffer = context_.allocate(memory_needed(options, kBytes));
    options.repeat = true;
    options.seconds = 100;
    std::jthread cuts([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        std::filesystem::resize_file(name_, kMiB + 100);
    });
    EXPECT_THROW(run_load(context_, {&file, 1}, buffer.view(), options), Error);
}

TEST_F(Load, options_that_make_no_sense_are_refused_with_their_cause) {
    const auto refused = [&](auto change) {
        LoadOptions options = buffered(4096);
        change(options);
        const ErrorInfo error = failure_of(options);
        EXPECT_EQ(error.code, ErrorCode::invalid_argument);
        return error.cause;
    };
    EXPECT_NE(refused([](LoadOptions& o) { o.repeat = true; }).find("without end"), std::string::npos);
    EXPECT_NE(refused([](LoadOptions& o) { o.request_bytes_max = 8192; }).find("step"), std::string::npos);
    EXPECT_NE(refused([](LoadOptions& o) { o.bytes = 2 * kBytes; }).find("nothing there"), std::string::npos);
    EXPECT_NE(refused([](LoadOptions& o) { o.mirror = o.whole_span = true; }).find("same bytes"), std::string::npos);
    EXPECT_NE(refused([](LoadOptions& o) { o.plain = true, o.in_flight = 2; }).find("plain"), std::string::npos);
    EXPECT_NE(refused([](LoadOptions& o) { o.read_percent = 101; }).find("101 percent"), std::string::npos);
    const File file = context_.open(name_);
    const Buffer small = context_.allocate(4096);
    EXPECT_THROW(run_load(context_, {&file, 1}, small.view(), buffered(4096)), Error);
    const File three[] = {file, file, file};
    EXPECT_THROW(run_load(context_, three, small.view(), buffered(4096)), Error);
}

TEST(Moved, keeps_ranges_as_few_as_their_overlaps_allow) {
    Moved moved;
    for (const std::uint64_t offset : {20u, 0u, 10u, 50u, 12u, 55u}) moved.add({offset, 10});
    const auto& ranges = moved.ranges();
    ASSERT_EQ(ranges.size(), 2u);
    EXPECT_EQ(ranges[0].offset, 0u);
    EXPECT_EQ(ranges[0].bytes, 30u);
    EXPECT_EQ(ranges[1].offset, 50u);
    EXPECT_EQ(ranges[1].bytes, 15u);
}

}  // namespace
}  // namespace penstock::load
