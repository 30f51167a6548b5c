// Storms on the emulated device or the one that PENSTOCK_TEST_DEVICE names: every page is checked, a wrong page is
// found, and the device counts what the service counts.
#include "load/storm/storm.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "context/test_files.hpp"
#include "load/storm/storm_rig.hpp"

namespace penstock::load {
namespace {

class StormTest : public testing::Test {
  protected:
    static constexpr std::uint64_t kBytes = 8 << 20, kSeed = 42;
    StormTest() { test::write_file(name_, content_); }
    static StormOptions some() {
        StormOptions options;
        options.blocks = 8;
        options.threads = 64;
        options.in_flight = 4;
        options.requests = 200;
        options.seconds = 20;
        options.seed = kSeed;
        return options;
    }

    std::shared_ptr<Device> device_ = test_device();
    test::TempDirectory directory_;
    const std::string name_ = directory_.file("data");
    std::vector<unsigned char> content_ = stamped(kBytes, kSeed);
};

TEST_F(StormTest, every_page_is_checked_and_counted_on_both_sides) {
    Storm storm(*device_, name_, {.slots = 64, .service_threads = 2});
    for (const bool sequential : {false, true}) {
        StormOptions options = some();
        options.sequential = sequential;
        const StormReport report = storm.run(options);
        EXPECT_GT(report.requests, 0u);
        EXPECT_EQ(report.requests % 200, 0u) << "every warp made all of its requests";
        EXPECT_EQ(report.bad_words, 0u);
        EXPECT_EQ(report.failures, 0u);
        EXPECT_EQ(served(report), report.requests);
        EXPECT_EQ(std::accumulate(report.latency.begin(), report.latency.end(), std::uint64_t{0}), report.requests);
        EXPECT_GT(report.cycles_per_ns, 0.05);
    }
    StormOptions lone = some();
    lone.blocks = 1;
    lone.threads = 32;
    EXPECT_EQ(storm.run(lone).requests, 200u) << "one warp";
}

TEST_F(StormTest, a_wrong_byte_is_found) {
    content_[5 * 4096 + 77] ^= 1;
    test::write_file(name_, content_);
    Storm storm(*device_, name_, {.slots = 64, .service_threads = 1});
    StormOptions options = some();
    options.sequential = true;
    options.requests = 2048;
    EXPECT_GT(storm.run(options).bad_words, 0u);
    options.checked = false;
    EXPECT_EQ(storm.run(options).bad_words, 0u);
}

TEST_F(StormTest, writes_carry_stamps_that_reads_then_find) {
    test::write_file(name_, std::vector<unsigned char>(kBytes));
    Storm storm(*device_, name_, {.slots = 64, .service_threads = 2, .writable = true});
    StormOptions options = some();
    options.sequential = true;
    options.requests = 2048;
    EXPECT_GT(storm.run(options).bad_words, 0u) << "nothing is written yet";
    options.writes = true;
    EXPECT_EQ(storm.run(options).failures, 0u);
    options.writes = false;
    EXPECT_EQ(storm.run(options).bad_words, 0u);
}

TEST_F(StormTest, a_turn_asks_for_the_same_pages_again) {
    Storm storm(*device_, name_, {.slots = 64, .service_threads = 2, .writable = true});
    StormOptions options = some();
    options.writes = true;
    options.seed = kSeed + 1;
    const StormReport written = storm.run(options);
    EXPECT_EQ(written.requests, 200 * storm.warps(options));
    options.writes = false;
    options.turn = written.turn;
    EXPECT_EQ(storm.run(options).bad_words, 0u) << "these were written, at random";
    options.turn = written.turn + 100;
    EXPECT_GT(storm.run(options).bad_words, 0u) << "others were not all";
}

TEST_F(StormTest, cycles_are_in_the_bucket_that_holds_them) {
    for (u32 bucket = 0; bucket + 1 < kCycleBuckets; ++bucket) {
        const u64 low = cycle_bucket_low(bucket), next = cycle_bucket_low(bucket + 1);
        ASSERT_LT(low, next);
        ASSERT_EQ(cycle_bucket(low), bucket);
        ASSERT_EQ(cycle_bucket(next - 1), bucket);
        if (bucket != 0) {
            ASSERT_LE(next - low, low / 16);
        }
    }
    EXPECT_EQ(cycle_bucket(~u64{0}), kCycleBuckets - 1);
    Storm storm(*device_, name_, {.slots = 64});
    const StormReport report = storm.run(some());
    u64 least = 0;
    for (u32 bucket = 0; bucket < kCycleBuckets; ++bucket) least += cycle_bucket_low(bucket) * report.latency[bucket];
    EXPECT_LE(least, report.cycles);
}

TEST_F(StormTest, wrong_rows_are_counted) {
    ondevice::DeviceMemory own(*device_, MemoryKind::device);
    constexpr u64 rows = 1000, row_bytes = 512;
    std::vector<u64> numbers(rows);
    std::vector<unsigned char> gathered;
    for (u64 row = 0; row < rows; ++row) {
        numbers[row] = row * 7919 % (kBytes / row_bytes);
        const auto from = content_.begin() + static_cast<std::ptrdiff_t>(numbers[row] * row_bytes);
        gathered.insert(gathered.end(), from, from + row_bytes);
    }
    gathered[5 * row_bytes] ^= 1;
    gathered.back() ^= 1;
    const ondevice::DmaBlock which = own.allocate(rows * sizeof(u64)), memory = own.allocate(rows * row_bytes);
    own.write(which, numbers.data(), rows * sizeof(u64));
    own.write(memory, gathered.data(), gathered.size());
    RowsWork work{reinterpret_cast<const u64*>(which.data), reinterpret_cast<const u64*>(memory.data), rows,
                  row_bytes / sizeof(u64), kSeed, nullptr};
    EXPECT_EQ(wrong_words(*device_, work), 2u);
    work.seed = kSeed + 1;
    EXPECT_EQ(wrong_words(*device_, work), rows * work.row_words);
}

TEST_F(StormTest, memory_that_the_device_reads_itself) {
    Storm storm(*device_, name_, {.source = StormSource::memory, .window_bytes = 1 << 20});
    const StormReport report = storm.run(some());
    EXPECT_GT(report.requests, 0u);
    EXPECT_EQ(report.bad_words, 0u);
    EXPECT_EQ(served(report), 0u);
}

TEST_F(StormTest, what_makes_no_sense_is_refused) {
    Storm storm(*device_, name_, {.slots = 64});
    for (const auto& change : std::vector<std::function<void(StormOptions&)>>{
             [](StormOptions& o) { o.blocks = 0; }, [](StormOptions& o) { o.threads = 2000; },
             [](StormOptions& o) { o.in_flight = 99; }, [](StormOptions& o) { o.request_bytes = 100; },
             [](StormOptions& o) { o.request_bytes = 8192; }}) {
        StormOptions options = some();
        change(options);
        EXPECT_THROW(storm.run(options), Error);
    }
    EXPECT_THROW(Storm(*device_, directory_.file("none"), {}), Error);
    Storm reader(*device_, name_, {.slots = 8, .service_threads = 1});
    StormOptions options = some();
    options.writes = true;
    options.requests = 3;
    const StormReport report = reader.run(options);
    EXPECT_EQ(report.failures, report.requests) << "the file is not open for writing";
}

}  // namespace
}  // namespace penstock::load
