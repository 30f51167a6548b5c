// The whole library on the emulated device: bytes arrive where they should by every path, at every alignment.
#include "penstock/context.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <random>
#include <thread>

#include "context/test_files.hpp"


namespace penstock {
namespace {

using test::fetch;
using test::read_file;
using test::stamped;
using test::TempDirectory;
using test::write_file;

// On the emulated device, or on the one named by PENSTOCK_TEST_DEVICE: the same tests run on a GPU host.
Context host_context(ContextOptions options = {}) {
    const char* device = std::getenv("PENSTOCK_TEST_DEVICE");
    options.device = device != nullptr && options.host.bandwidth_bytes_per_s == 0 ? device : "host";
    return Context(options);
}

constexpr PathKind kRealPaths[] = {PathKind::automatic, PathKind::buffered, PathKind::direct,        PathKind::aio,
                                   PathKind::uring,     PathKind::mmap,     PathKind::uring_buffered};

class EveryPath : public testing::TestWithParam<PathKind> {
  protected:
    TempDirectory directory_;
    Context context_ = host_context();
    TransferOptions options() const {
        TransferOptions options;
        options.path = GetParam();
        return options;
    }
};

TEST_P(EveryPath, reads_any_range_into_device_memory_and_touches_nothing_else) {
    const std::uint64_t size = 5 * kMiB + 1234;
    write_file(directory_.file("data"), stamped(size));
    const File file = context_.open(directory_.file("data"));
    const Buffer buffer = context_.allocate(size + 4096);
    const std::pair<std::uint64_t, std::uint64_t> ranges[] = {
        {0, size},      {0, 1},          {1, 4095},     {4096, 4096},
        {4097, 100000}, {511, 1 * kMiB}, {size - 1, 1}, {3 * kMiB, 2 * kMiB}};
    for (const auto& [offset, bytes] : ranges) {
        const std::vector<unsigned char> blank(size + 4096, 0xEE);
        context_.copy_to_device(buffer.data(), blank.data(), blank.size());
        const Outcome outcome = file.read(buffer.view().slice(13, bytes), offset, options());
        ASSERT_TRUE(outcome.ok()) << outcome.error.message();
        EXPECT_EQ(outcome.bytes, bytes);
        const auto got = fetch(context_, buffer.data(), size + 4096);
        EXPECT_TRUE(std::equal(got.begin() + 13, got.begin() + 13 + static_cast<long>(bytes),
                               stamped(bytes, offset).begin())) << offset << " " << bytes;
        EXPECT_EQ(std::count(got.begin(), got.begin() + 13, 0xEE), 13);
        EXPECT_EQ(got[13 + bytes], 0xEE);
        if (GetParam() != PathKind::automatic) {
            EXPECT_EQ(outcome.evidence.path_name(), to_string(GetParam()));
        }
    }
}

TEST_P(EveryPath, writes_any_range_and_leaves_the_rest_of_the_file_alone) {
    const std::uint64_t size = 3 * kMiB + 77;
    const Buffer buffer = context_.allocate(size);
    const auto source = stamped(size, 1000);
    context_.copy_to_device(buffer.data(), source.data(), size);
    const std::pair<std::uint64_t, std::uint64_t> ranges[] = {{0, 4096},
                                                              {1, 1},
                                                              {4095, 2},
                                                              {100, 2 * kMiB},
                                                              {8192, 1 * kMiB},
                                                              {4096 * 3 + 512, 4096 * 5},
                                                              {12345, size - 20000}};
    for (const auto& [offset, bytes] : ranges) {
        std::vector<unsigned char> expected(size, 0xAB);
        write_file(directory_.file("out"), expected);
        File file = context_.open(directory_.file("out"), {.mode = OpenMode::read_write});
        const Outcome outcome = file.write(buffer.view().slice(5, bytes), offset, options());
        ASSERT_TRUE(outcome.ok()) << outcome.error.message();
        EXPECT_EQ(outcome.bytes, bytes);
        file.close();
        std::copy_n(source.begin() + 5, bytes, expected.begin() + static_cast<long>(offset));
        EXPECT_TRUE(read_file(directory_.file("out")) == expected) << offset << " " << bytes;
    }
}

TEST_P(EveryPath, a_read_past_the_end_stops_there_and_says_how_much_came) {
    write_file(directory_.file("short"), stamped(100001));
    const File file = context_.open(directory_.file("short"));
    const Buffer buffer = context_.allocate(4 * kMiB);
    const Outcome outcome = file.read(buffer.view(), 1, options());
    EXPECT_TRUE(outcome.ok()) << outcome.error.message();
    EXPECT_TRUE(outcome.reached_end);
    EXPECT_EQ(outcome.bytes, 100000u);
    EXPECT_TRUE(fetch(context_, buffer.data(), 100000) == stamped(100000, 1));
}

TEST_P(EveryPath, host_memory_needs_no_alignment_either) {
    write_file(directory_.file("data"), stamped(2 * kMiB + 5));
    const File file = context_.open(directory_.file("data"));
    std::vector<unsigned char> memory(2 * kMiB + 100);
    for (std::uint64_t shift : {0, 1, 64}) {
        const MemoryView view = context_.wrap(memory.data() + shift, 2 * kMiB, MemoryKind::system);
        const Outcome outcome = file.read(view, 5, options());
        ASSERT_TRUE(outcome.ok()) << outcome.error.message();
        EXPECT_TRUE(std::equal(memory.begin() + static_cast<long>(shift),
                               memory.begin() + static_cast<long>(shift + 2 * kMiB), stamped(2 * kMiB, 5).begin()));
    }
}

INSTANTIATE_TEST_SUITE_P(Context, EveryPath, testing::ValuesIn(kRealPaths), [](const auto& tested) {
    std::string name = to_string(tested.param);
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
});

TEST(Context, many_ranges_of_many_files_move_in_one_submission) {
    const TempDirectory directory;
    const Context context = host_context();
    std::vector<File> files;
    for (int i = 0; i < 3; ++i) {
        const std::string name = directory.file("f" + std::to_string(i));
        write_file(name, stamped(1 * kMiB, static_cast<std::uint64_t>(i) << 32));
        files.push_back(context.open(name));
    }
    std::mt19937_64 random(1);
    constexpr std::uint64_t kRoom = 24 * kMiB;  // for 5000 ranges of 4 KiB each, more or less
    const Buffer buffer = context.allocate(kRoom);
    std::vector<Range> ranges;
    std::vector<unsigned char> expected(kRoom);
    std::uint64_t place = 0;
    for (int i = 0; i < 5000; ++i) {
        const std::uint64_t which = random() % 3;
        const std::uint64_t offset = random() % (1 * kMiB - 8192);
        const std::uint64_t bytes = 1 + random() % 8192;
        ranges.push_back({&files[which], offset, static_cast<std::byte*>(buffer.data()) + place, bytes});
        ASSERT_LE(place + bytes, kRoom);
        const auto piece = stamped(bytes, (which << 32) + offset);
        std::copy(piece.begin(), piece.end(), expected.begin() + static_cast<long>(place));
        place += bytes + random() % 3;
    }
    for (PathKind path : kRealPaths) {
        context.copy_to_device(buffer.data(), std::vector<unsigned char>(kRoom).data(), kRoom);
        TransferOptions options;
        options.path = path;
        const Outcome outcome = context.start(Direction::read, ranges, MemoryKind::device, options).result();
        ASSERT_TRUE(outcome.ok()) << to_string(path) << ": " << outcome.error.message();
        EXPECT_TRUE(fetch(context, buffer.data(), kRoom) == expected) << to_string(path);
    }
}

TEST(Context, the_budget_is_never_exceeded_by_transfers_of_many_shapes_at_once) {
    const TempDirectory directory;
    ContextOptions options;
    options.budget_bytes = 8 * kMiB;
    const Context context = host_context(options);
    write_file(directory.file("data"), stamped(12 * kMiB));
    const File file = context.open(directory.file("data"));
    std::vector<Buffer> buffers;
    std::vector<Transfer> transfers;
    for (std::uint64_t chunk : {64 * kKiB, 256 * kKiB, 1 * kMiB, 2 * kMiB}) {
        for (PathKind path : {PathKind::buffered, PathKind::direct, PathKind::uring}) {
            TransferOptions each;
            each.path = path;
            each.chunk_bytes = chunk;
            buffers.push_back(context.allocate(12 * kMiB));
            transfers.push_back(file.start_read(buffers.back().view(), 0, each));
        }
    }
    for (const Transfer& transfer : transfers) EXPECT_TRUE(transfer.result().ok());
    EXPECT_LE(context.pinned_peak_bytes(), 8 * kMiB);
    EXPECT_GT(context.pinned_peak_bytes(), 0u);
}

TEST(Context, what_cannot_fit_the_budget_is_refused_with_the_numbers) {
    const TempDirectory directory;
    ContextOptions options;
    options.budget_bytes = 4 * kMiB;
    const Context context = host_context(options);
    write_file(directory.file("data"), stamped(1 * kMiB));
    const File file = context.open(directory.file("data"));
    const Buffer buffer = context.allocate(1 * kMiB);
    TransferOptions wish;
    wish.path = PathKind::direct;
    wish.chunk_bytes = 4 * kMiB;
    wish.workers = 4;
    try {
        file.read(buffer.view(), 0, wish);
        FAIL() << "a plan over the budget was accepted";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
        EXPECT_EQ(error.info().file, directory.file("data"));
        EXPECT_NE(std::string(error.what()).find("than there is: 2097152 bytes"), std::string::npos) << error.what();
    }
}

TEST(Context, evidence_sums_to_the_bytes_moved_and_shows_residency) {
    const TempDirectory directory;
    const Context context = host_context();
    write_file(directory.file("data"), stamped(8 * kMiB + 1));
    const File file = context.open(directory.file("data"));
    const Buffer buffer = context.allocate(8 * kMiB + 1);
    file.drop_cache();
    const Outcome cold = file.read(buffer.view());
    file.residency(0, 1);
    TransferOptions through;
    through.path = PathKind::buffered;
    const Outcome hot_maker = file.read(buffer.view(), 0, through);
    const Outcome hot = file.read(buffer.view());
    for (const Outcome& outcome : {cold, hot_maker, hot}) {
        std::uint64_t sum = 0;
        for (const PathShare& share : outcome.evidence.paths) sum += share.bytes;
        EXPECT_EQ(sum, 8 * kMiB + 1);
        ASSERT_TRUE(outcome.evidence.before && outcome.evidence.after && outcome.evidence.process_io);
    }
    EXPECT_EQ(hot.evidence.before->fraction(), 1.0);
    EXPECT_EQ(hot.evidence.path_name(), "buffered");
    if (file.facts().direct && cold.evidence.before->fraction() == 0.0) {
        EXPECT_NE(cold.evidence.path_name(), "buffered") << cold.evidence.plan;
        EXPECT_EQ(cold.evidence.after->fraction(), 0.0) << "O_DIRECT must not fill the cache";
    }
}

TEST(Context, a_half_cached_file_goes_by_two_paths) {
    const TempDirectory directory;
    const Context context = host_context();
    const std::uint64_t size = 128 * kMiB;
    write_file(directory.file("data"), stamped(size));
    const File file = context.open(directory.file("data"));
    if (!file.facts().direct) GTEST_SKIP() << "no O_DIRECT here: " << file.facts().direct_cause;
    file.drop_cache();
    if (file.residency(0, size).fraction() > 0) GTEST_SKIP() << "this file system keeps pages after DONTNEED";
    const Buffer buffer = context.allocate(size);
    TransferOptions through;
    through.path = PathKind::buffered;
    file.read(buffer.view().slice(0, size / 2), 0, through).or_throw();
    const Outcome outcome = file.read(buffer.view());
    ASSERT_TRUE(outcome.ok());
    EXPECT_EQ(outcome.evidence.path_name(), "mixed") << outcome.evidence.plan;
    EXPECT_TRUE(fetch(context, buffer.data(), size) == stamped(size));
}

TEST(Context, a_cancelled_transfer_ends_soon_and_says_so) {
    const TempDirectory directory;
    ContextOptions options;
    options.host.bandwidth_bytes_per_s = 50e6;  // 64 MiB would take over a second
    const Context context = host_context(options);
    write_file(directory.file("data"), stamped(64 * kMiB));
    const File file = context.open(directory.file("data"));
    const Buffer buffer = context.allocate(64 * kMiB);
    const auto start = Clock::now();
    const Transfer transfer = file.start_read(buffer.view());
    transfer.cancel();
    const Outcome outcome = transfer.result();
    EXPECT_EQ(outcome.error.code, ErrorCode::cancelled);
    EXPECT_LT(outcome.bytes, 64 * kMiB);
    EXPECT_LT(Clock::now() - start, std::chrono::milliseconds(900));
}

TEST(Context, a_deadline_ends_a_transfer) {
    const TempDirectory directory;
    ContextOptions options;
    options.host.bandwidth_bytes_per_s = 20e6;
    const Context context = host_context(options);
    write_file(directory.file("data"), stamped(64 * kMiB));
    const File file = context.open(directory.file("data"));
    const Buffer buffer = context.allocate(64 * kMiB);
    TransferOptions each;
    each.deadline = Deadline::after(std::chrono::milliseconds(100));
    const auto start = Clock::now();
    const Outcome outcome = file.read(buffer.view(), 0, each);
    EXPECT_EQ(outcome.error.code, ErrorCode::timed_out);
    EXPECT_LT(Clock::now() - start, std::chrono::milliseconds(1500));
}

TEST(Context, progress_counts_up_to_the_total) {
    const TempDirectory directory;
    const Context context = host_context();
    write_file(directory.file("data"), stamped(32 * kMiB));
    const File file = context.open(directory.file("data"));
    const Buffer buffer = context.allocate(32 * kMiB);
    std::atomic<std::uint64_t> last{0};
    TransferOptions each;
    each.progress = [&](std::uint64_t done, std::uint64_t total) {
        EXPECT_GE(done, last.load());
        EXPECT_EQ(total, 32 * kMiB);
        last = done;
    };
    EXPECT_TRUE(file.read(buffer.view(), 0, each).ok());
    EXPECT_EQ(last.load(), 32 * kMiB);
}

TEST(Context, memory_of_a_running_transfer_is_kept) {
    const TempDirectory directory;
    ContextOptions options;
    options.host.bandwidth_bytes_per_s = 500e6;
    const Context context = host_context(options);
    write_file(directory.file("data"), stamped(32 * kMiB));
    Transfer transfer;
    {
        const File file = context.open(directory.file("data"));
        const Buffer buffer = context.allocate(32 * kMiB);
        transfer = file.start_read(buffer.view());
    }
    EXPECT_TRUE(transfer.result().ok());
}

TEST(Context, dropping_everything_with_work_pending_leaves_no_thread_and_no_hang) {
    const TempDirectory directory;
    write_file(directory.file("data"), stamped(32 * kMiB));
    const auto threads = [] {
        const std::filesystem::directory_iterator tasks("/proc/self/task");
        return std::distance(begin(tasks), end(tasks));
    };
    const auto before = threads();
    const auto start = Clock::now();
    {
        ContextOptions options;
        options.host.bandwidth_bytes_per_s = 20e6;
        const Context context = host_context(options);
        const File file = context.open(directory.file("data"));
        const Buffer buffer = context.allocate(32 * kMiB);
        file.start_read(buffer.view());
    }
    EXPECT_LT(Clock::now() - start, std::chrono::milliseconds(1200));
    // The kernel wakes whoever joins a thread a moment before it takes the thread out of /proc.
    const Deadline gone = Deadline::after(std::chrono::milliseconds(500));
    while (threads() != before && !gone.passed()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(threads(), before);
}

TEST(Context, many_threads_share_one_file) {
    const TempDirectory directory;
    const Context context = host_context();
    write_file(directory.file("data"), stamped(8 * kMiB));
    const File file = context.open(directory.file("data"));
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (std::uint64_t t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            const Buffer buffer = context.allocate(2 * kMiB);
            for (std::uint64_t i = 0; i < 30; ++i) {
                const std::uint64_t offset = t * 1 * kMiB + i * 4099;
                const std::uint64_t bytes = i % 3 == 0 ? 4096 : 1 * kMiB + i;
                const Outcome outcome = file.read(buffer.view().slice(0, bytes), offset);
                if (!outcome.ok() || fetch(context, buffer.data(), bytes) != stamped(bytes, offset)) ++wrong;
            }
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong.load(), 0);
}

TEST(Context, wrong_use_is_refused_in_words) {
    const TempDirectory directory;
    const Context context = host_context();
    write_file(directory.file("data"), stamped(1000));
    const File file = context.open(directory.file("data"));
    const Buffer buffer = context.allocate(4096);
    const auto code_of = [](const auto& action) {
        try {
            action();
        } catch (const Error& error) {
            return error.code();
        }
        return ErrorCode::ok;
    };
    EXPECT_EQ(code_of([&] { file.read(buffer.view(), 1001); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { file.read(buffer.view(), UINT64_MAX); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { file.write(buffer.view()); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { buffer.view().slice(1, 4096); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { context.open(directory.file("none")); }), ErrorCode::not_found);
    EXPECT_EQ(code_of([&] { context.open(directory.path()); }), ErrorCode::not_a_regular_file);
    EXPECT_EQ(code_of([&] { context.open("/dev/zero"); }), ErrorCode::not_a_regular_file);
    EXPECT_EQ(code_of([&] { context.allocate(0); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { host_context({.budget_bytes = 1000}); }), ErrorCode::invalid_argument);
    int on_stack = 0;
    EXPECT_EQ(code_of([&] { context.wrap(&on_stack, 4, MemoryKind::device); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { context.wrap(buffer.data(), 4097, MemoryKind::device); }), ErrorCode::invalid_argument);
    const char* device = std::getenv("PENSTOCK_TEST_DEVICE");
    const bool is_host_memory = device == nullptr || std::string_view(device) == "host";
    EXPECT_EQ(code_of([&] { context.wrap(buffer.data(), 4096, MemoryKind::system); }),
              is_host_memory ? ErrorCode::ok : ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { Context(ContextOptions{.device = "gpu"}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(file.read(buffer.view(), 1000).bytes, 0u);
}

}  // namespace
}  // namespace penstock
