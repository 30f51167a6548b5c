// The public DeviceCache: gathers, ranges, pins, statistics, and errors that say which file, where, why and what to do.
// On the device that PENSTOCK_TEST_DEVICE names, else on the emulated one.
#include "penstock/device_cache.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <thread>

#include "context/cache/device_cache_rig.hpp"
#include "context/test_files.hpp"
#include "os/system.hpp"
#include "penstock/ondevice/stored_array.hpp"

namespace penstock {
namespace {

using test::Bytes;
using test::device_of_test;
using test::error_of;

class DeviceCacheTest : public testing::Test {
  protected:
    static constexpr std::uint64_t kBytes = (1 << 20) + 1234;
    DeviceCacheTest() { test::write_file(name_, content_ = test::stamped(kBytes)); }

    File open(OpenMode mode = OpenMode::read) const { return context_.open(name_, {.mode = mode}); }
    DeviceCache make(const File& file, std::uint64_t pages = 64) const {
        return DeviceCache(context_, {&file, 1}, {.cache_bytes = pages * 4096, .timeout = std::chrono::seconds(5)});
    }
    Buffer on_device(const void* from, std::uint64_t bytes) const {
        const Buffer buffer = context_.allocate(bytes);
        context_.copy_to_device(buffer.data(), from, bytes);
        return buffer;
    }
    Buffer on_device(const std::vector<std::int64_t>& rows) const { return on_device(rows.data(), 8 * rows.size()); }
    Bytes read(const DeviceCache& cache, std::uint64_t offset, std::uint64_t bytes) const {
        const Buffer to = context_.allocate(bytes);
        cache.read(0, offset, to.view());
        return test::fetch(context_, to.data(), bytes);
    }
    void write(const DeviceCache& cache, std::uint64_t offset, const Bytes& bytes) const {
        cache.write(0, offset, on_device(bytes.data(), bytes.size()).view());
    }
    Bytes part(std::uint64_t first, std::uint64_t count) const {
        return {content_.begin() + first, content_.begin() + first + count};
    }

    Context context_{{.device = device_of_test()}};
    test::TempDirectory directory_;
    const std::string name_ = directory_.file("data");
    Bytes content_;
};

TEST_F(DeviceCacheTest, gathers_rows_after_a_header) {
    const DeviceCache cache = make(open());
    constexpr std::uint64_t kRow = 1000, kHeader = 130;
    std::mt19937_64 random(3);
    std::vector<std::int64_t> rows(2000);
    for (auto& row : rows) row = static_cast<std::int64_t>(random() % ((kBytes - kHeader) / kRow));
    const Buffer out = context_.allocate(rows.size() * kRow);
    cache.gather(0, {.row_bytes = kRow, .offset_bytes = kHeader}, on_device(rows).view(), out.view());
    const Bytes got = test::fetch(context_, out.data(), out.bytes());
    for (std::uint64_t i = 0; i < rows.size(); ++i) {
        ASSERT_EQ(std::memcmp(&got[i * kRow], &content_[kHeader + rows[i] * kRow], kRow), 0) << "row " << rows[i];
    }
}

TEST_F(DeviceCacheTest, what_is_scattered_and_written_is_in_the_file_after_close) {
    const DeviceCache cache = make(open(OpenMode::read_write));
    const Bytes values = test::stamped(2 * 512, 1 << 30);
    cache.scatter(0, {.row_bytes = 512}, on_device({7, 1900}).view(), on_device(values.data(), 1024).view());
    write(cache, 4000, Bytes(300, 9));
    cache.close();
    std::copy_n(values.begin(), 512, content_.begin() + 7 * 512);
    std::copy_n(values.begin() + 512, 512, content_.begin() + 1900 * 512);
    std::fill_n(content_.begin() + 4000, 300, static_cast<unsigned char>(9));
    EXPECT_EQ(test::read_file(name_), content_);
    cache.close();
    const ErrorInfo closed = error_of([&] { cache.flush(); });
    EXPECT_NE(closed.message().find("the cache is closed"), std::string::npos) << closed.message();
}

TEST_F(DeviceCacheTest, the_going_of_the_last_copy_flushes_too_and_keeps_what_it_needs_until_then) {
    std::optional<DeviceCache> cache;
    {
        const Context context({.device = device_of_test()});
        const File file = context.open(name_, {.mode = OpenMode::read_write});
        cache.emplace(context, std::span(&file, 1), DeviceCacheOptions{.cache_bytes = kMiB, .map = false});
        const Buffer from = context.allocate(10);
        context.copy_to_device(from.data(), Bytes(10, 1).data(), 10);
        cache->write(0, 0, from.view());
    }
    std::optional<DeviceCache> copy = *cache;
    cache.reset();
    EXPECT_EQ(copy->bytes(0), kBytes);
    EXPECT_EQ(test::read_file(name_), content_) << "control: not yet";
    copy.reset();
    std::fill_n(content_.begin(), 10, static_cast<unsigned char>(1));
    EXPECT_EQ(test::read_file(name_), content_);
}

TEST_F(DeviceCacheTest, several_files_share_one_cache) {
    const std::string other = directory_.file("other");
    test::write_file(other, test::stamped(50'000, 1 << 25));
    const std::vector<File> files{open(), context_.open(other)};
    const DeviceCache cache(context_, files, {.cache_bytes = 16 * 4096});
    EXPECT_EQ(cache.arrays(), 2u);
    EXPECT_EQ(cache.bytes(1), 50'000u);
    const Buffer to = context_.allocate(50'000);
    cache.read(1, 0, to.view());
    EXPECT_EQ(test::fetch(context_, to.data(), 50'000), test::stamped(50'000, 1 << 25));
    EXPECT_EQ(read(cache, 0, kBytes), content_);
    EXPECT_NE(cache.ref(0), cache.ref(1));
    const ErrorInfo absent = error_of([&] { cache.read(2, 0, to.view()); });
    EXPECT_NE(absent.cause.find("no array 2"), std::string::npos) << absent.message();
}

// Writing back a page of one array would overwrite what the other array wrote to the same page.
TEST_F(DeviceCacheTest, a_file_that_is_written_is_in_one_array) {
    const std::string linked = directory_.file("linked");
    std::filesystem::create_hard_link(name_, linked);
    for (const bool written : {true, false}) {
        const auto mode = written ? OpenMode::read_write : OpenMode::read;
        const std::vector<File> files{open(), context_.open(linked, {.mode = mode})};
        if (!written) {
            EXPECT_EQ(DeviceCache(context_, files).arrays(), 2u);
            break;
        }
        const ErrorInfo error = error_of([&] { DeviceCache(context_, files); });
        EXPECT_EQ(error.code, ErrorCode::invalid_argument);
        EXPECT_EQ(error.file, linked);
        EXPECT_NE(error.cause.find("in two arrays"), std::string::npos) << error.message();
    }
}

TEST_F(DeviceCacheTest, statistics_add_up) {
    const File file = open();
    const DeviceCache cache = make(file, 512);
    read(cache, 0, kBytes);
    read(cache, 0, kBytes);
    const DeviceCacheStatistics found = cache.statistics();
    const std::uint64_t pages = (kBytes + 4095) / 4096;
    EXPECT_EQ(found.total.misses, pages);
    EXPECT_GE(found.total.hits, pages);
    EXPECT_EQ(found.total.failures, 0u);
    DeviceCacheStatistics::Counts sum;
    std::map<std::uint64_t, std::uint64_t> waits_of_all;
    for (const auto& one : found.processors) {
        sum.misses += one.counts.misses, sum.hits += one.counts.hits;
        sum.loaded_bytes += one.counts.loaded_bytes;
        EXPECT_EQ(one.counts.loaded_bytes, one.counts.misses * 4096);
        for (const auto& bucket : one.waits) waits_of_all[bucket.low_cycles] += bucket.count;
    }
    EXPECT_EQ(sum.misses, found.total.misses);
    EXPECT_EQ(sum.hits, found.total.hits);
    EXPECT_EQ(sum.loaded_bytes, found.total.loaded_bytes);
    EXPECT_EQ(found.total.loaded_bytes, pages * 4096);
    EXPECT_EQ(found.total.written_back_bytes, 0u);
    ASSERT_EQ(waits_of_all.size(), found.waits.size());
    for (const auto& bucket : found.waits) EXPECT_EQ(waits_of_all[bucket.low_cycles], bucket.count);
    std::uint64_t waits = 0, served = 0, bytes = 0;
    for (const auto& bucket : found.waits) {
        waits += bucket.count;
        EXPECT_NEAR(bucket.low_ns * found.cycles_per_ns, static_cast<double>(bucket.low_cycles), 1);
        const std::uint64_t low = bucket.low_cycles;
        EXPECT_TRUE(low == 0 || ondevice::wait_bucket(low) == ondevice::wait_bucket(low - 1) + 1) << low;
    }
    EXPECT_GT(waits, 0u);
    EXPECT_GT(found.cycles_per_ns, 0.05);
    EXPECT_LT(found.cycles_per_ns, 20);
    for (const auto& one : found.served) served += one.requests, bytes += one.bytes;
    if (!found.arrays.at(0).mapped) {
        EXPECT_EQ(served, pages);
        EXPECT_EQ(bytes, kBytes);
        EXPECT_EQ(found.mapped_pages, 0u);
        EXPECT_FALSE(found.arrays[0].mapping_refusal.empty());
    }
    EXPECT_EQ(found.arrays[0].name, name_);
    EXPECT_EQ(found.pages, 512u);
    EXPECT_GE(found.device_bytes, 512u * 4096);
    EXPECT_GT(found.pinned_bytes, 0u);
}

TEST_F(DeviceCacheTest, bytes_of_pages_are_those_that_were_moved_but_for_what_the_last_page_lacks) {
    const DeviceCache cache = make(open(OpenMode::read_write));
    const auto moved = [](const DeviceCacheStatistics& found) {
        std::uint64_t bytes = found.arrays.at(0).files.at(0).mapped_bytes;
        for (const auto& one : found.served) bytes += one.bytes;
        return bytes;
    };
    read(cache, 0, 30 * 4096);
    write(cache, 50 * 4096 + 100, Bytes(300));  // a part of a page: the page is loaded
    write(cache, 60 * 4096, Bytes(2 * 4096));   // whole pages: they are not loaded
    cache.flush();
    const DeviceCacheStatistics whole = cache.statistics();
    EXPECT_EQ(whole.total.loaded_bytes, 31u * 4096);
    EXPECT_EQ(whole.total.written_back_bytes, 3u * 4096);
    EXPECT_EQ(moved(whole), whole.total.loaded_bytes + whole.total.written_back_bytes);
    std::uint64_t written_back = 0;
    for (const auto& one : whole.processors) written_back += one.counts.written_back_bytes;
    EXPECT_EQ(written_back, whole.total.written_back_bytes);
    write(cache, kBytes - 1, Bytes(1));
    cache.flush();
    const DeviceCacheStatistics found = cache.statistics();
    const std::uint64_t lacks = 4096 - kBytes % 4096;
    EXPECT_EQ(moved(found) + 2 * lacks, found.total.loaded_bytes + found.total.written_back_bytes);
}

TEST_F(DeviceCacheTest, pins_hold_and_are_counted_by_bytes) {
    const DeviceCache cache = make(open());
    cache.pin(0, 5000, 100'000);
    const std::uint64_t pages = (5000 + 100'000 - 1) / 4096 - 5000 / 4096 + 1;
    read(cache, 200'000, kBytes - 200'000);
    const std::uint64_t misses = cache.statistics().total.misses;
    EXPECT_EQ(read(cache, 5000, 100'000), part(5000, 100'000));
    EXPECT_EQ(cache.statistics().total.misses, misses) << "what is pinned is not read again";
    const ErrorInfo full = error_of([&] { cache.pin(0, 200'000, (65 - pages) * 4096); });
    EXPECT_EQ(full.code, ErrorCode::out_of_memory) << full.message();
    cache.unpin(0, 5000, 100'000);
    const ErrorInfo again = error_of([&] { cache.unpin(0, 5000, 100'000); });
    EXPECT_EQ(again.code, ErrorCode::invalid_argument) << again.message();
    cache.pin(0, 0, 56 * 4096);
}

TEST_F(DeviceCacheTest, prefetched_pages_are_here_and_forgotten_ones_are_not) {
    const DeviceCache cache = make(open(OpenMode::read_write));
    cache.prefetch(0, 0, 40 * 4096);
    EXPECT_EQ(cache.statistics().total.misses, 40u);
    read(cache, 0, 40 * 4096);
    EXPECT_EQ(cache.statistics().total.misses, 40u);
    cache.invalidate(0, 0, 40 * 4096);
    read(cache, 0, 40 * 4096);
    EXPECT_EQ(cache.statistics().total.misses, 80u);
    write(cache, 0, Bytes(5));
    const ErrorInfo dirty = error_of([&] { cache.invalidate(0, 0, 4096); });
    EXPECT_NE(dirty.cause.find("not written back"), std::string::npos) << dirty.message();
    cache.flush();
    cache.invalidate(0, 0, 4096);
}

TEST_F(DeviceCacheTest, advice_and_a_kept_range) {
    const File file = open();
    const DeviceCache cache(context_, {&file, 1}, {.cache_bytes = 128 * 4096, .policy = CachePolicy::pinned_range});
    cache.advise(0, CacheAdvice::sweep);
    cache.keep(0, 0, 100 * 4096);
    for (int sweep = 0; sweep < 8; ++sweep) ASSERT_EQ(read(cache, 0, kBytes), content_);
    const auto total = cache.statistics().total;
    EXPECT_GT(static_cast<double>(total.hits), 0.2 * static_cast<double>(total.hits + total.misses));
    const ErrorInfo wrong = error_of([&] { make(file).keep(0, 0, 4096); });
    EXPECT_NE(wrong.cause.find("sweep-resistant"), std::string::npos) << wrong.message();
    for (const auto policy : {CachePolicy::sweep_resistant, CachePolicy::pinned_range})
        EXPECT_EQ(cache_policy_from_string(to_string(policy)), policy);
    EXPECT_EQ(cache_advice_from_string(to_string(CacheAdvice::once)), CacheAdvice::once);
    EXPECT_EQ(cache_policy_from_string("lru"), std::nullopt);
    for (const CacheFetch fetch : {CacheFetch::automatic, CacheFetch::pages, CacheFetch::rows})
        EXPECT_EQ(cache_fetch_from_string(to_string(fetch)), fetch);
    EXPECT_EQ(cache_fetch_from_string("sectors"), std::nullopt);
}

TEST_F(DeviceCacheTest, rows_that_are_not_there_are_named) {
    const DeviceCache cache = make(open());
    const Buffer out = context_.allocate(3 * 512);
    for (const std::int64_t row : {100, -1}) {
        const Buffer rows = on_device({0, row, 1});
        const ErrorInfo error = error_of(
            [&] { cache.gather(0, {.row_bytes = 512, .count = 100}, rows.view(), out.view()); });
        EXPECT_EQ(error.code, ErrorCode::invalid_argument);
        const std::string wanted = "the indices name row " + std::to_string(row) + "; there are 100";
        EXPECT_NE(error.cause.find(wanted), std::string::npos) << error.message();
        EXPECT_EQ(error.file, name_);
    }
    const Buffer rows = on_device({0, 99, 1});
    cache.gather(0, {.row_bytes = 512, .count = 100}, rows.view(), out.view());
    cache.gather(0, {.row_bytes = 512, .count = 0}, {}, {});
}

TEST_F(DeviceCacheTest, what_makes_no_sense_is_refused) {
    const File file = open();
    const DeviceCache cache = make(file);
    const Buffer out = context_.allocate(512), rows = on_device({1});
    const auto refused = [&](const std::function<void()>& action) {
        return error_of(action).code == ErrorCode::invalid_argument;
    };
    EXPECT_TRUE(refused([&] { cache.gather(0, {.row_bytes = 0}, rows.view(), out.view()); }));
    EXPECT_TRUE(refused([&] { cache.gather(0, {.row_bytes = 511}, rows.view(), out.view()); }));
    EXPECT_TRUE(refused([&] { cache.gather(0, {.row_bytes = 512}, rows.view().slice(1, 7), out.view()); }));
    EXPECT_TRUE(refused([&] { cache.gather(0, {.row_bytes = 512, .offset_bytes = kBytes}, rows.view(), out.view()); }));
    EXPECT_TRUE(refused([&] { cache.read(0, kBytes - 1, out.view()); }));
    EXPECT_TRUE(refused([&] { cache.pin(0, kBytes, 1); }));
    for (const std::uint64_t page_bytes : {0ull, 256ull, 3000ull, 4ull << 20})
        EXPECT_TRUE(refused([&] { DeviceCache(context_, {&file, 1}, {.page_bytes = page_bytes}); }));
    EXPECT_TRUE(refused([&] { DeviceCache(context_, {&file, 1}, {.cache_bytes = 4095}); }));
    EXPECT_TRUE(refused([&] { DeviceCache(context_, {&file, 1}, {.threads = 257}); }));
    EXPECT_TRUE(refused([&] { DeviceCache(context_, {&file, 1}, {.timeout = {}}); }));
    EXPECT_TRUE(refused([&] { DeviceCache(context_, std::span<const File>(), {}); }));
    EXPECT_TRUE(refused([&] { DeviceCache(Context({.device = device_of_test()}), {&file, 1}, {}); }));
    File made = context_.open(directory_.file("new"), {.mode = OpenMode::create, .size_bytes = 4096});
    EXPECT_TRUE(refused([&] { DeviceCache(context_, {&made, 1}, {}); }));
    made.close();
    EXPECT_TRUE(refused([&] { DeviceCache(context_, {&made, 1}, {}); })) << "closed";
}

TEST_F(DeviceCacheTest, ordinary_memory_is_used_where_the_device_reaches_it) {
    const DeviceCache cache = make(open());
    Bytes memory(100);
    const MemoryView view{memory.data(), memory.size(), MemoryKind::system};
    const DeviceInfo info = context_.device().info();
    if (!info.emulated && !info.coherent_with_host) {
        EXPECT_EQ(error_of([&] { cache.read(0, 50, view); }).code, ErrorCode::invalid_argument);
        return;
    }
    cache.read(0, 50, view);
    EXPECT_EQ(memory, part(50, 100));
}

TEST_F(DeviceCacheTest, files_that_may_not_be_written_and_files_cut_short) {
    const File file = open();
    const DeviceCache cache = make(file);
    const ErrorInfo read_only = error_of([&] { write(cache, 0, Bytes(10)); });
    EXPECT_EQ(read_only.code, ErrorCode::read_only);
    EXPECT_EQ(read_only.file, name_);
    EXPECT_NE(read_only.advice.find("read_write"), std::string::npos);
    std::filesystem::resize_file(name_, 500'000);
    const ErrorInfo truncated = error_of([&] { read(cache, 0, kBytes); });
    EXPECT_EQ(truncated.code, ErrorCode::end_of_file) << truncated.message();
    EXPECT_GE(truncated.offset_bytes + truncated.length_bytes, 500'000u);
    const Buffer out = context_.allocate(512);
    const ErrorInfo row = error_of([&] { cache.gather(0, {.row_bytes = 512}, on_device({2000}).view(), out.view()); });
    EXPECT_EQ(row.code, ErrorCode::end_of_file) << row.message();
    EXPECT_EQ(row.offset_bytes, 2000u * 512);
    EXPECT_GT(cache.statistics().total.failures, 0u);
}

TEST_F(DeviceCacheTest, failures_of_users_kernels_are_thrown_once) {
    if (!context_.device().info().emulated) GTEST_SKIP() << "the host is the device here";
    const DeviceCache cache = make(open());
    cache.check();
    {
        const ondevice::StoredArray<ondevice::u32> array(*cache.ref(0));
        ondevice::u32 expected = 0;
        std::memcpy(&expected, &content_[4 * 77], 4);
        EXPECT_EQ(array[77], expected);
        static_cast<void>(static_cast<ondevice::u32>(array[kBytes]));
    }
    const ErrorInfo error = error_of([&] { cache.check(); });
    EXPECT_NE(error.cause.find("past the end"), std::string::npos) << error.message();
    cache.check();
    EXPECT_EQ(cache.statistics().total.misses, 1u);
}

TEST_F(DeviceCacheTest, a_forked_child_is_refused_and_harms_nothing) {
    auto cache = std::make_unique<DeviceCache>(make(open(OpenMode::read_write)));
    write(*cache, 0, Bytes(10, 1));
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(20);
        bool good = error_of([&] { cache->flush(); }).code == ErrorCode::unsupported;
        good &= error_of([&] { cache->close(); }).code == ErrorCode::unsupported;
        cache.reset();
        ::_exit(good ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(test::read_file(name_), content_) << "nothing was written by the child";
    cache->close();
    EXPECT_NE(test::read_file(name_), content_);
}

// Some user is always in the cache, so a lock that prefers readers would never let `close` in.
TEST_F(DeviceCacheTest, a_cache_that_is_always_in_use_is_closed) {
    const DeviceCache cache = make(open());
    std::vector<std::thread> threads;
    std::atomic<int> reads{0};
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            const Buffer to = context_.allocate(kBytes);
            while (error_of([&] { cache.read(0, 0, to.view()); }).ok()) ++reads;
        });
    }
    while (reads < 40) std::this_thread::yield();
    cache.close();
    for (std::thread& thread : threads) thread.join();
}

TEST_F(DeviceCacheTest, threads_use_it_at_once_while_one_closes_it) {
    const DeviceCache cache = make(open());
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0}, rounds{0};
    for (int i = 0; i < 3; ++i) {
        threads.emplace_back([&] {
            try {
                for (;; ++rounds) wrong += read(cache, 1000, 50'000) != part(1000, 50'000);
            } catch (const Error& error) {
                wrong += error.info().cause != "the cache is closed";
            }
        });
    }
    while (rounds < 20) std::this_thread::yield();
    cache.close();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace penstock
