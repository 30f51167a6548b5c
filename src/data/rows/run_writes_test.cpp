// Rows that are written by the calling thread: the bytes and no others, by few calls; nothing where a queue is better.
#include "data/rows/run_writes.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "context/seams.hpp"
#include "context/test_files.hpp"
#include "os/disk_waits.hpp"

namespace penstock::data {
namespace {

constexpr std::int64_t kAllRows = 4000;

class FullDisk : public os::System {
  public:
    ssize_t pwrite(int fd, const void* memory, std::size_t bytes, std::uint64_t offset) override {
        if (waits) ++waited;
        if (++writes > most) {
            errno = ENOSPC;
            return -1;
        }
        return System::pwrite(fd, memory, bytes, offset);
    }
    long waits_of_thread() noexcept override { return waited; }
    bool waits = false;
    long waited = 0;
    int writes = 0, most = 1 << 30;
};

// Rows of a dataset whose elements are rows, behind a header.
class RowWritesTest : public ::testing::Test {
  protected:
    static constexpr std::uint64_t kHeader = 777;

    std::vector<unsigned char> on_disk() {
        std::vector<unsigned char> all(bytes_.size());
        const Buffer memory = context_.allocate(all.size(), MemoryKind::system);
        EXPECT_EQ(file_.read(memory.view()).bytes, all.size());
        std::memcpy(all.data(), memory.data(), all.size());
        return all;
    }
    void make(std::uint64_t row) {
        row_ = row;
        bytes_ = test::stamped(kHeader + kAllRows * row + 999);
        test::write_file(directory_.file("data"), bytes_);
        file_ = context_.open(directory_.file("data"), {.mode = OpenMode::read_write});
        Stored stored;
        stored.item_bytes = row;
        stored.shape = stored.chunk_shape = {kAllRows};
        stored.cells = {0};
        stored.offsets = {kHeader};
        layout_.emplace(std::move(stored));
        system_.writes = 0;
    }
    bool write(const std::vector<std::int64_t>& numbers, RunsMoved& done) {
        const Buffer memory = context_.allocate(numbers.size() * row_, MemoryKind::system);
        const auto content = test::stamped(memory.bytes(), 5);
        std::memcpy(memory.data(), content.data(), content.size());
        for (std::size_t at = 0; at < numbers.size(); ++at) {
            std::memcpy(&bytes_[kHeader + static_cast<std::uint64_t>(numbers[at]) * row_], &content[at * row_], row_);
        }
        WantedRows rows;
        rows.box.count[0] = 1;
        rows.numbers = numbers;
        const auto by = [&](const MemoryView& from, std::span<const Range> ranges) {
            return file_.try_small_writes(from, ranges);
        };
        return write_rows(by, *layout_, rows, {memory.view(), done});
    }

    test::TempDirectory directory_;
    FullDisk system_;
    Context context_ = context::make_context({.device = "host"}, {.system = &system_});
    std::uint64_t row_ = 0;
    std::vector<unsigned char> bytes_;
    File file_;
    std::optional<Layout> layout_;
};

std::vector<std::int64_t> each(std::int64_t step, std::int64_t count) {
    std::vector<std::int64_t> numbers;
    for (std::int64_t at = 0; at < count; ++at) numbers.push_back(at * step % kAllRows);
    return numbers;
}

TEST_F(RowWritesTest, put_just_the_bytes_of_the_rows) {
    for (const std::uint64_t row : {std::uint64_t{1}, std::uint64_t{24}, std::uint64_t{2048}, std::uint64_t{5000}}) {
        // Apart, in no order, and all of them.
        for (const auto& numbers : {each(3, kAllRows / 3), each(1201, kAllRows - 1), each(1, kAllRows), each(7, 1)}) {
            make(row);
            RunsMoved done;
            ASSERT_TRUE(write(numbers, done));
            EXPECT_EQ(on_disk(), bytes_) << row;
            EXPECT_EQ(done.requested_bytes, numbers.size() * row);
            EXPECT_EQ(done.bytes, numbers.size() * row);
            EXPECT_EQ(done.operations, static_cast<std::uint64_t>(system_.writes));
            ASSERT_FALSE(done.samples.empty());
            EXPECT_EQ(done.samples.begin()->second.plan->plan.rfind("write ", 0), 0u);
        }
    }
}

TEST_F(RowWritesTest, that_follow_each_other_in_the_file_go_by_one_call) {
    make(2048);
    RunsMoved done;
    ASSERT_TRUE(write(each(1201, kAllRows), done));  // all rows, in no order
    EXPECT_LE(done.operations, 2048u * kAllRows / (64 * kKiB) + 8);
    EXPECT_EQ(done.staged_bytes, 2048u * kAllRows);
    EXPECT_LE(done.scratch_peak_bytes, 128 * kKiB);
    EXPECT_EQ(on_disk(), bytes_);
}

TEST_F(RowWritesTest, named_twice_or_of_a_full_disk_or_read_from_a_disk_first_are_left_to_a_transfer) {
    make(2048);
    RunsMoved done;
    EXPECT_FALSE(write({1, 5, 1}, done));
    EXPECT_EQ(system_.writes, 0);
    system_.most = 100;
    EXPECT_FALSE(write(each(3, 1000), done));
    EXPECT_EQ(system_.writes, 101);
    system_.most = 1 << 30;
    system_.writes = 0;
    system_.waits = true;
    EXPECT_FALSE(write(each(3, 1000), done));
    EXPECT_LE(system_.writes, os::DiskWaits::kReads);
}

}  // namespace
}  // namespace penstock::data
