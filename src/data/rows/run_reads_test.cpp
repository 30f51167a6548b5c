// Many runs of a file, by any number of threads: the same bytes and counts, and nothing that counts where one fails.
// Several callers read beside each other, for the thread sanitizer.
#include "data/rows/run_reads.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "context/seams.hpp"
#include "context/test_files.hpp"
#include "os/disk_waits.hpp"

namespace penstock::data {
namespace {

constexpr std::uint64_t kRow = 2 * kKiB, kRows = 6000;
// As a disk does, it says that the thread waits that reads.
class Disk : public os::System {
  public:
    ssize_t pread(int fd, void* memory, std::size_t bytes, std::uint64_t offset) override {
        if (waits) ++waited;
        ++reads;
        return System::pread(fd, memory, bytes, offset);
    }
    long waits_of_thread() noexcept override { return waited; }
    ssize_t pread_cached(int fd, void* memory, std::size_t bytes, std::uint64_t offset) override {
        ++cached_reads;
        errno = EAGAIN;
        if (offset >= cold_from && offset < cold_to) return -1;
        const std::uint64_t most = offset < cold_from ? cold_from - offset : bytes;
        return System::pread(fd, memory, std::min<std::uint64_t>(bytes, most), offset);
    }
    std::atomic<std::uint64_t> cold_from = UINT64_MAX, cold_to = UINT64_MAX;  // what is not in the page cache
    std::atomic<int> cached_reads = 0;
    std::atomic<bool> waits = false;
    std::atomic<long> waited = 0;
    std::atomic<int> reads = 0;
};

constexpr double kSlow = 1e9;  // bytes a second of copies to the device: the host fills half a slot sooner

class RunReadsTest : public ::testing::Test {
  protected:
    RunReadsTest() : bytes_(test::stamped(kRows * kRow)) {
        test::write_file(directory_.file("data"), bytes_);
        file_ = context_.open(directory_.file("data"));
    }

    // Rows in an order of their own, most of them alone, some with their neighbour.
    static std::vector<FileRun> runs() {
        std::vector<FileRun> found;
        for (std::uint64_t to = 0; to < kRows / 2; ++to) found.push_back({to * 4219 % kRows * kRow, to * kRow, kRow});
        return found;
    }
    std::string told(std::span<const FileRun> runs, unsigned threads, MemoryKind kind = MemoryKind::system) {
        const Buffer memory = context_.allocate(kRows / 2 * kRow, kind);
        std::memset(memory.data(), 0xee, memory.bytes());
        RunsMoved done;
        if (!read_runs(file_, runs, {memory.view(), done, threads})) return "no";
        for (const FileRun& run : runs) {
            const auto* const here = static_cast<const std::byte*>(memory.data()) + run.memory_offset;
            if (std::memcmp(here, bytes_.data() + run.file_offset, run.bytes) != 0) return "wrong bytes";
        }
        std::string text = std::to_string(done.requested_bytes) + " " + std::to_string(done.operations) + " " +
                           std::to_string(done.bytes) + " " + std::to_string(done.staged_bytes) + " " +
                           std::to_string(done.scratch_peak_bytes) + " " + std::to_string(done.host_copies_bytes);
        for (const auto& [size, sample] : done.samples) {
            text += " " + std::to_string(size) + "@" + std::to_string(sample.offset_bytes);
        }
        return done.seconds > 0 ? text : "no time";
    }

    test::TempDirectory directory_;
    std::vector<unsigned char> bytes_;
    Disk disk_;
    Context context_ = context::make_context({.device = "host", .host = {.bandwidth_bytes_per_s = kSlow}},
                                             {.system = &disk_});
    File file_;
};

TEST_F(RunReadsTest, bytes_and_counts_do_not_depend_on_the_number_of_threads) {
    const std::vector<FileRun> all = runs();
    const std::string one = told(all, 1);
    EXPECT_NE(one, "no");
    EXPECT_NE(one, "wrong bytes");
    for (const unsigned threads : {2u, 3u, 16u, 0u}) EXPECT_EQ(told(all, threads), one) << threads;
}

// A GPU's memory, which stands for itself here: the emulated device copies in streams as a GPU does.
TEST_F(RunReadsTest, into_device_memory_go_through_pinned_memory_that_no_copy_needs_any_more) {
    const std::vector<FileRun> all = runs();
    const std::string one = told(all, 1, MemoryKind::device);
    EXPECT_EQ(one.substr(0, one.find('@')), "6144000 3000 6144000 0 0 6144000 2048");
    for (const unsigned threads : {2u, 3u, 16u, 0u}) EXPECT_EQ(told(all, threads, MemoryKind::device), one) << threads;
}

TEST_F(RunReadsTest, into_device_memory_may_lie_apart_there) {
    std::vector<FileRun> all = runs();
    std::reverse(all.begin(), all.end());
    const std::string one = told(all, 2, MemoryKind::device);
    EXPECT_EQ(one.substr(0, one.find('@')), "6144000 3000 6144000 0 0 6144000 2048");
}

TEST_F(RunReadsTest, one_run_may_be_longer_than_a_small_read) {
    const FileRun whole{kRow, 0, kRows / 2 * kRow - 1};
    const std::string one = told({&whole, 1}, 1);
    EXPECT_NE(one, "no");
    EXPECT_EQ(told({&whole, 1}, 4), one);
}

TEST_F(RunReadsTest, of_a_box_go_on_beyond_some_mib_where_the_page_cache_has_it) {
    const Buffer memory = context_.allocate(kRows * kRow, MemoryKind::system);
    ASSERT_GT(memory.bytes(), kMostHere);
    const FileRun whole{0, 0, memory.bytes()}, some{100, 0, 1 * kMiB};
    unsigned threads = 2;
    const auto is_read = [&](const FileRun& run, RunsMoved& done) {
        std::memset(memory.data(), 0xee, run.bytes);
        if (!read_box(file_, {&run, 1}, {memory.view().slice(0, run.bytes), done, threads})) return false;
        EXPECT_EQ(done.bytes, run.bytes);
        return std::memcmp(memory.data(), bytes_.data() + run.file_offset, run.bytes) == 0;
    };
    RunsMoved done, little;
    EXPECT_TRUE(is_read(whole, done));
    EXPECT_TRUE(is_read(some, little));
    const FileFacts facts = file_.facts();
    if (facts.file_system == "tmpfs") GTEST_SKIP() << "files of tmpfs lie in memory";
    threads = 1;  // several may read what is there before the first has found what is not
    // The end, the begin, and the middle are not there. The first two are found out by the first reads.
    struct Cold {
        std::uint64_t from, to;
        int most_reads;
    };
    const Cold parts[] = {{kRows * kRow - 1, UINT64_MAX, 1}, {0, kMiB, 2}, {5 * kMiB, 6 * kMiB, 100}};
    for (const auto& [from, to, most] : parts) {
        disk_.cold_from = from;
        disk_.cold_to = to;
        disk_.cached_reads = 0;
        RunsMoved none;
        EXPECT_FALSE(is_read(whole, none)) << from;
        EXPECT_LE(disk_.cached_reads, most) << from;
        RunsMoved few;
        EXPECT_TRUE(is_read(some, few)) << "which is read wherever it is";
    }
}

TEST_F(RunReadsTest, nothing_counts_where_one_thread_cannot_read) {
    std::vector<FileRun> all = runs();
    all[all.size() - 7].file_offset = kRows * kRow - 1;
    for (const unsigned threads : {1u, 4u}) {
        for (const MemoryKind kind : {MemoryKind::system, MemoryKind::device}) {
            const Buffer memory = context_.allocate(kRows / 2 * kRow, kind);
            RunsMoved done;
            EXPECT_FALSE(read_runs(file_, all, {memory.view(), done, threads}));
            EXPECT_EQ(done.operations, 0u);
            EXPECT_EQ(done.bytes, 0u);
        }
    }
}

// All rows of a dataset of one dimension, whose elements are rows here.
class RowReadsTest : public RunReadsTest {
  protected:
    static Layout all_rows() {
        Stored stored;
        stored.item_bytes = kRow;
        stored.shape = stored.chunk_shape = {static_cast<std::int64_t>(kRows)};
        stored.cells = {0};
        stored.offsets = {0};
        return Layout(std::move(stored));
    }
    std::string told_of_rows(const std::vector<std::int64_t>& numbers, unsigned threads, MemoryKind kind) {
        const Buffer memory = context_.allocate(numbers.size() * kRow, kind);
        std::memset(memory.data(), 0xee, memory.bytes());
        WantedRows rows;
        rows.box.count[0] = 1;
        rows.numbers = numbers;
        RunsMoved done;
        const ReadRanges read = [&](const MemoryView& into, std::span<const Range> ranges) {
            return file_.try_small_reads(into, ranges);
        };
        if (!read_rows(read, layout_, rows, {memory.view(), done, threads})) return "no";
        for (std::size_t at = 0; at < numbers.size(); ++at) {
            const auto* const here = static_cast<const std::byte*>(memory.data()) + at * kRow;
            const auto* const wanted = &bytes_[static_cast<std::size_t>(numbers[at]) * kRow];
            if (std::memcmp(here, wanted, kRow) != 0) return "wrong bytes";
        }
        EXPECT_EQ(done.requested_bytes, memory.bytes());
        return std::to_string(done.operations) + " " + std::to_string(done.bytes);
    }
    const Layout layout_ = all_rows();
};

TEST_F(RowReadsTest, bytes_and_counts_do_not_depend_on_the_number_of_threads) {
    std::vector<std::int64_t> numbers;  // in no order, some of them named again, near each other and far apart
    for (std::int64_t at = 0; at < 5000; ++at) numbers.push_back(at % 7 == 0 ? 11 : at * 4219 % 6000);
    for (const MemoryKind kind : {MemoryKind::system, MemoryKind::device}) {
        const std::string one = told_of_rows(numbers, 1, kind);
        EXPECT_NE(one, "no");
        EXPECT_NE(one, "wrong bytes");
        for (const unsigned threads : {2u, 5u, 0u}) EXPECT_EQ(told_of_rows(numbers, threads, kind), one) << threads;
        EXPECT_NE(told_of_rows({5, 3, 5, 4, 5999, 0}, 1, kind), "wrong bytes") << "by the caller alone";
    }
}

TEST_F(RowReadsTest, of_a_disk_are_left_to_a_queue) {
    std::vector<std::int64_t> numbers;  // each of them alone
    for (std::int64_t at = 0; at < 2000; ++at) numbers.push_back(at * 1201 % 2000 * 3);
    EXPECT_NE(told_of_rows(numbers, 3, MemoryKind::system), "no");
    disk_.waits = true;
    for (const unsigned threads : {1u, 3u}) EXPECT_EQ(told_of_rows(numbers, threads, MemoryKind::system), "no");
}

TEST_F(RunReadsTest, of_a_disk_are_left_to_a_queue) {
    const std::vector<FileRun> all = runs();
    disk_.waits = true;
    for (const MemoryKind kind : {MemoryKind::system, MemoryKind::device}) {
        for (const unsigned threads : {1u, 3u}) {
            disk_.reads = 0;
            EXPECT_EQ(told(all, threads, kind), "no");
            EXPECT_LE(disk_.reads, static_cast<int>(threads) * os::DiskWaits::kReads);
        }
    }
}

TEST_F(RunReadsTest, of_several_callers_go_on_side_by_side) {
    const std::vector<FileRun> all = runs();
    const std::string one = told(all, 1);
    std::vector<std::string> found(3);
    std::vector<std::thread> callers;
    for (std::string& mine : found) callers.emplace_back([&] { mine = told(all, 2); });
    for (std::thread& caller : callers) caller.join();
    for (const std::string& mine : found) EXPECT_EQ(mine, one);
}

}  // namespace
}  // namespace penstock::data
