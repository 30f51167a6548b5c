// Which bytes gather fetches where a row's page is missing: rows or pages, of a file that the device reaches itself. On
// the emulated device, which here reaches files as a GPU does, or on the one that PENSTOCK_TEST_DEVICE names.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <random>

#include "context/test_files.hpp"
#include "ondevice/cache/file_cache.hpp"
#include "ondevice/device_rig.hpp"
#include "ondevice/service/opened_file_rig.hpp"

namespace penstock::ondevice {
namespace {

constexpr u64 kRow = 512, kPage = 4096, kPages = 4096;
constexpr u64 kRows = kPages * kPage / kRow;

class FetchTest : public testing::Test {
  protected:
    FetchTest() : content_(test::stamped(kPages * kPage + 1000)) {  // the last page is not whole
        test::write_file(name_, content_);
    }
    ~FetchTest() override { std::filesystem::remove(name_); }

    // A cache of half of the pages.
    std::unique_ptr<FileCache> make(Fetch fetch, int flags = O_RDONLY) {
        file_.emplace(name_, flags);
        FileCacheOptions options;
        options.cache_bytes = kPages / 2 * kPage;
        options.fetch = fetch;
        options.map_emulated = true;
        options.ordered_rows = ordered_rows_;
        options.ordered_at_once = 1500;
        options.unordered_bytes = unordered_bytes_;
        auto cache = std::make_unique<FileCache>(*device_, std::vector<FileSet>{&file_->handle}, options);
        EXPECT_TRUE(cache->mapped(0)) << cache->mapping_refusal(0);
        return cache;
    }
    // Gathers the rows and compares every byte; `first`: where row 0 begins.
    Status gather(FileCache& cache, const std::vector<u64>& rows, u64 row_bytes = kRow, u64 first = 0) {
        const OnDevice to(*device_, rows.size() * row_bytes), numbers(*device_, rows.data(), rows.size() * sizeof(u64));
        CacheWork work{};
        work.task = CacheTask::gather;
        work.rows = reinterpret_cast<const u64*>(numbers.data());
        work.first = first;
        work.count = rows.size();
        work.row_bytes = row_bytes;
        work.memory = to.data();
        const FileCache::Failure failure = cache.run(0, work);
        const Status status = failure.status;
        failed_at_ = failure.where;
        const std::vector<unsigned char> got = to.bytes();
        for (u64 i = 0; i < rows.size() && status == Status::ok; ++i) {
            const unsigned char* const row = &got[i * row_bytes];
            EXPECT_TRUE(std::equal(row, row + row_bytes, &content_[first + rows[i] * row_bytes])) << "row " << rows[i];
        }
        return status;
    }
    std::vector<u64> at_random(u64 count, u64 below) {
        std::vector<u64> rows(count);
        for (u64& row : rows) row = random_() % below;
        return rows;
    }
    Tally total(FileCache& cache) {
        Tally sum{};
        for (const CacheCounts& counts : cache.counts()) merge<Native>(sum, counts.tally);
        return sum;
    }

    std::shared_ptr<Device> device_ = test_device();
    const std::string name_ = "/dev/shm/penstock-fetch-" + std::to_string(::getpid());
    std::vector<unsigned char> content_;
    std::optional<OpenedFile> file_;
    std::mt19937_64 random_{7};
    u64 ordered_rows_ = ~u64{0}, unordered_bytes_ = 0, failed_at_ = 0;
};

TEST_F(FetchTest, rows_are_copied_by_themselves_and_no_page_comes) {
    const auto cache = make(Fetch::rows);
    ASSERT_EQ(gather(*cache, at_random(3000, kRows)), Status::ok);
    EXPECT_EQ(total(*cache).misses, 0u);
    EXPECT_EQ(cache->moved()[0].pages, 0u);
    EXPECT_EQ(cache->moved()[0].rows, 3000u);
    EXPECT_EQ(cache->moved()[0].bytes, 3000 * kRow);
}

TEST_F(FetchTest, rows_of_two_pages_and_at_the_end_of_the_file_are_whole) {
    const auto cache = make(Fetch::rows);
    std::vector<u64> rows(400);
    std::iota(rows.begin(), rows.end(), (content_.size() - 24) / 1000 - 400);
    ASSERT_EQ(gather(*cache, rows, 1000, 24), Status::ok);
    EXPECT_GT(cache->moved()[0].rows, 400u) << "some rows lie in two pages";
    EXPECT_EQ(cache->moved()[0].bytes, 400'000u);
}

TEST_F(FetchTest, pages_that_are_there_serve_rows_too) {
    const auto cache = make(Fetch::rows);
    const OnDevice to(*device_, 100 * kPage);
    ASSERT_EQ(cache->run(0, {.task = CacheTask::read, .count = 100 * kPage, .memory = to.data()}).status, Status::ok);
    ASSERT_EQ(gather(*cache, at_random(500, 100 * kPage / kRow)), Status::ok);
    EXPECT_EQ(cache->moved()[0].rows, 0u);
}

TEST_F(FetchTest, auto_fetches_rows_where_pages_are_not_used_again_and_pages_where_they_are) {
    const auto cache = make(Fetch::automatic);
    ASSERT_EQ(gather(*cache, at_random(20'000, kRows)), Status::ok);
    EXPECT_GT(cache->moved()[0].rows, 10'000u) << "the cache has half of the pages at most";
    EXPECT_LT(cache->moved()[0].pages, 4000u);
    for (int round = 0; round < 8; ++round) ASSERT_EQ(gather(*cache, at_random(20'000, kRows / 8)), Status::ok);
    const u64 rows = cache->moved()[0].rows, hits = total(*cache).hits;
    ASSERT_EQ(gather(*cache, at_random(20'000, kRows / 8)), Status::ok);
    EXPECT_LT(cache->moved()[0].rows - rows, 500u);
    EXPECT_GT(total(*cache).hits - hits, 15'000u) << "lanes that have the same page count as one";
}

TEST_F(FetchTest, pages_come_where_they_are_asked_for_or_are_to_stay) {
    const auto pages = make(Fetch::pages);
    ASSERT_EQ(gather(*pages, at_random(1000, kRows)), Status::ok);
    EXPECT_EQ(pages->moved()[0].rows, 0u);
    EXPECT_GT(pages->moved()[0].pages, 0u);
    FileCacheOptions options;
    options.cache_bytes = kPages / 2 * kPage;
    options.replacement = Replacement::pinned_range;
    options.map_emulated = true;
    FileCache kept(*device_, {&file_->handle}, options);
    ASSERT_EQ(gather(kept, at_random(10'000, kRows)), Status::ok);
    EXPECT_EQ(kept.moved()[0].rows, 0u);
}

TEST_F(FetchTest, arrays_that_may_be_written_and_long_rows_come_by_pages) {
    const auto written = make(Fetch::rows, O_RDWR);
    const std::vector<unsigned char> changed(kRow, 9);
    const OnDevice from(*device_, changed.data(), changed.size());
    const CacheWork write{.task = CacheTask::write, .first = 5 * kRow, .count = kRow, .memory = from.data()};
    ASSERT_EQ(written->run(0, write).status, Status::ok);
    std::copy(changed.begin(), changed.end(), content_.begin() + 5 * kRow);
    ASSERT_EQ(gather(*written, {4, 5, 6}), Status::ok) << "the page has bytes that the file lacks";
    ASSERT_EQ(gather(*written, at_random(1000, kRows)), Status::ok);
    EXPECT_EQ(written->moved()[0].rows, 0u);
    ASSERT_EQ(written->flush().status, Status::ok);
    const auto read = make(Fetch::rows);
    ASSERT_EQ(gather(*read, at_random(1000, kPages / 2), kPage / 2 + 1), Status::ok);
    EXPECT_EQ(read->moved()[0].rows, 0u);
}

TEST_F(FetchTest, rows_that_are_not_there_and_files_that_were_cut_are_failures) {
    const auto cache = make(Fetch::rows);
    EXPECT_EQ(gather(*cache, {1, kRows + 2}), Status::out_of_range);
    ASSERT_EQ(gather(*cache, {1, kRows - 1}), Status::ok) << "control";
    if (device_->info().emulated) return;  // the host's threads would fault in pages that the file lost
    std::filesystem::resize_file(name_, kPage);
    EXPECT_EQ(gather(*cache, {kRows - 1}), Status::truncated);
}

class OrderedRows : public FetchTest {
  protected:
    OrderedRows() { ordered_rows_ = 1000; }
};

// Of all lengths: of several rows a warp, of pieces that no vector copies, over the edges of pages; in more than one
// part of the list.
TEST_F(OrderedRows, are_those_of_the_list) {
    for (const Fetch fetch : {Fetch::rows, Fetch::automatic}) {
        const auto cache = make(fetch);
        u64 ordered = 0;
        for (const u64 bytes : {8, 20, 64, 100, 128, 512, 1000, 2048}) {
            const u64 there = kPages * kPage / bytes;
            ASSERT_EQ(gather(*cache, at_random(4000, there), bytes), Status::ok) << bytes;
            ASSERT_EQ(gather(*cache, at_random(999, there), bytes), Status::ok) << bytes << ", too few for an order";
            EXPECT_EQ(cache->ordered_rows(), ordered += 4000) << bytes;
        }
    }
}

TEST_F(OrderedRows, that_are_not_there_are_told_by_their_place_in_the_list) {
    const auto cache = make(Fetch::rows);
    std::vector<u64> rows = at_random(4000, kRows);
    rows[3700] = kRows + 2;
    EXPECT_EQ(gather(*cache, rows), Status::out_of_range);
    EXPECT_EQ(failed_at_, 3700u);
}

TEST_F(OrderedRows, are_not_needed_where_the_gather_before_found_most_in_the_cache) {
    const auto cache = make(Fetch::pages);
    ASSERT_EQ(gather(*cache, at_random(4000, 100)), Status::ok);
    EXPECT_EQ(cache->ordered_rows(), 0u) << "whole pages need no order";
    const auto found = make(Fetch::automatic);
    const std::vector<u64> near = at_random(20'000, 1000);
    for (int turn = 0; turn < 3; ++turn) ASSERT_EQ(gather(*found, near), Status::ok);
    const u64 before = found->ordered_rows();
    EXPECT_GT(before, 0u);
    ASSERT_EQ(gather(*found, near), Status::ok);
    EXPECT_EQ(found->ordered_rows(), before) << "all of them are there";
    ASSERT_EQ(gather(*found, at_random(20'000, kRows)), Status::ok) << "as the one before, which told of no need";
    ASSERT_EQ(gather(*found, at_random(20'000, kRows)), Status::ok);
    EXPECT_EQ(found->ordered_rows(), before + 20'000);
}

TEST_F(OrderedRows, are_not_asked_for_in_a_small_file) {
    unordered_bytes_ = content_.size();
    const auto cache = make(Fetch::rows);
    ASSERT_EQ(gather(*cache, at_random(4000, kRows)), Status::ok);
    EXPECT_EQ(cache->ordered_rows(), 0u);
}

}  // namespace
}  // namespace penstock::ondevice
