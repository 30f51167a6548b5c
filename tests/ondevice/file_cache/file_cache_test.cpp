// A page cache over ordinary files as its owner runs it, on the emulated device, or on the one that
// PENSTOCK_TEST_DEVICE names. The tests compare what they gather, read and write with the files.
#include "ondevice/cache/file_cache.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <random>

#include "context/test_files.hpp"
#include "ondevice/device_rig.hpp"
#include "ondevice/files/file_mapping.hpp"
#include "ondevice/service/held_reads_rig.hpp"
#include "ondevice/service/opened_file_rig.hpp"

namespace penstock::ondevice {
namespace {

using Bytes = std::vector<unsigned char>;

class FileCacheTest : public testing::Test {
  protected:
    static constexpr u64 kBytes = (1 << 20) + 1234;  // the last page is not whole
    FileCacheTest() { test::write_file(name_, content_ = test::stamped(kBytes)); }

    FileCache make(const OpenedFile& file, u64 frames = 64, u64 page_bytes = 4096) {
        FileCacheOptions options;
        options.page_bytes = page_bytes;
        options.cache_bytes = frames * page_bytes;
        options.wait_ns = 5'000'000'000;
        return FileCache(*device_, {&file.handle}, options);
    }
    FileCache::Failure read_to(FileCache& cache, u64 first, const OnDevice& to, u64 count) {
        return cache.run(0, {.task = CacheTask::read, .first = first, .count = count, .memory = to.data()});
    }
    Bytes read(FileCache& cache, u64 first, u64 count) {
        const OnDevice to(*device_, count);
        const auto failure = read_to(cache, first, to, count);
        EXPECT_EQ(failure.status, Status::ok) << words(failure.status) << " at " << failure.where;
        return to.bytes();
    }
    FileCache::Failure write(FileCache& cache, u64 first, const Bytes& bytes) {
        const OnDevice from(*device_, bytes.data(), bytes.size());
        return cache.run(0, {.task = CacheTask::write, .first = first, .count = bytes.size(), .memory = from.data()});
    }
    Bytes gather(FileCache& cache, const std::vector<u64>& rows, u64 row_bytes, Status wanted = Status::ok) {
        const OnDevice to(*device_, rows.size() * row_bytes), indices(*device_, rows.data(), rows.size() * sizeof(u64));
        CacheWork work{};
        work.task = CacheTask::gather;
        work.rows = reinterpret_cast<const u64*>(indices.data());
        work.count = rows.size();
        work.row_bytes = row_bytes;
        work.memory = to.data();
        const auto failure = cache.run(0, work);
        EXPECT_EQ(failure.status, wanted) << words(failure.status) << " at " << failure.where;
        return to.bytes();
    }
    Tally total(FileCache& cache) {
        Tally sum{};
        for (const CacheCounts& counts : cache.counts()) merge<Native>(sum, counts.tally);
        return sum;
    }
    Bytes part(u64 first, u64 count) const { return {content_.begin() + first, content_.begin() + first + count}; }

    std::shared_ptr<Device> device_ = test_device();
    test::TempDirectory directory_;
    const std::string name_ = directory_.file("data");
    Bytes content_;
};

TEST_F(FileCacheTest, reads_any_range_through_a_smaller_cache) {
    const OpenedFile file(name_, O_RDONLY);
    FileCache cache = make(file);
    EXPECT_EQ(read(cache, 0, kBytes), content_);
    EXPECT_EQ(read(cache, kBytes - 5000, 5000), part(kBytes - 5000, 5000));
    EXPECT_EQ(read(cache, 4095, 2), part(4095, 2));
    EXPECT_GE(total(cache).misses, kBytes / 4096);
    EXPECT_EQ(total(cache).write_backs, 0u);
    EXPECT_EQ(cache.run(0, {.task = CacheTask::read, .first = kBytes - 1, .count = 2}).status, Status::out_of_range);
    EXPECT_EQ(read(cache, kBytes - 1, 1), part(kBytes - 1, 1)) << "control: what is inside";
}

TEST_F(FileCacheTest, gathers_rows_of_any_size) {
    const OpenedFile file(name_, O_RDONLY);
    FileCache cache = make(file);
    std::mt19937_64 random(7);
    for (const u64 row_bytes : {4ull, 20ull, 512ull, 5000ull, 16384ull}) {
        std::vector<u64> rows(500);
        for (u64& row : rows) row = random() % (kBytes / row_bytes);
        const Bytes got = gather(cache, rows, row_bytes);
        for (u64 i = 0; i < rows.size(); ++i) {
            const unsigned char* const row = &got[i * row_bytes];
            ASSERT_TRUE(std::equal(row, row + row_bytes, &content_[rows[i] * row_bytes]))
                << "row " << rows[i] << " of " << row_bytes << " bytes";
        }
    }
    gather(cache, {0, kBytes / 512, 1}, 512, Status::out_of_range);
    gather(cache, {0, kBytes / 512 - 1, 1}, 512);
}

TEST_F(FileCacheTest, rows_may_begin_anywhere_and_end_before_the_file) {
    const OpenedFile file(name_, O_RDONLY);
    FileCache cache = make(file);
    const std::vector<u64> rows{0, 3, 9, 10};
    const OnDevice to(*device_, 4 * 1000), indices(*device_, rows.data(), rows.size() * sizeof(u64));
    CacheWork work{};
    work.task = CacheTask::gather;
    work.rows = reinterpret_cast<const u64*>(indices.data());
    work.first = 130;
    work.row_bytes = 1000;
    work.memory = to.data();
    work.row_limit = 10;
    work.count = 3;
    ASSERT_EQ(cache.run(0, work).status, Status::ok);
    Bytes got = to.bytes();
    got.resize(3000);
    Bytes expected = part(130, 1000);
    for (const u64 row : {3, 9}) {
        const Bytes one = part(130 + row * 1000, 1000);
        expected.insert(expected.end(), one.begin(), one.end());
    }
    EXPECT_EQ(got, expected);
    work.count = 4;
    EXPECT_EQ(cache.run(0, work).status, Status::out_of_range) << "row 10 of 10";
    work.first = kBytes + 1;
    EXPECT_EQ(cache.run(0, work).status, Status::out_of_range) << "rows that begin past the end";
}

TEST_F(FileCacheTest, failures_of_operators_are_told_once) {
    const OpenedFile file(name_, O_RDONLY);
    FileCache cache = make(file);
    EXPECT_EQ(cache.take_failure(), Status::ok);
    if (!device_->info().emulated) return;  // below, the host is the device
    {
        const StoredArray<u32> array(*cache.ref(0));
        static_cast<void>(static_cast<u32>(array[kBytes]));
    }
    EXPECT_EQ(cache.take_failure(), Status::out_of_range);
    EXPECT_EQ(cache.take_failure(), Status::ok);
}

// Some answers come after the wait has stopped polling, others before. Work queued earlier is done before the call's
// work begins.
TEST_F(FileCacheTest, answers_of_a_slow_device_are_waited_for_and_each_work_has_its_own) {
    for (const u64 latency_ns : {20'000ull, 2'000'000ull}) {
        device_ = make_host_device({.latency_ns = latency_ns});
        const OpenedFile file(name_, O_RDONLY);
        FileCache cache = make(file);
        const OnDevice to(*device_, 4096);
        for (u64 turn = 0; turn < 5; ++turn) {
            const auto failure = read_to(cache, kBytes - turn, to, 4096);
            EXPECT_EQ(failure.status, Status::out_of_range);
            EXPECT_EQ(failure.where, kBytes - turn);
            EXPECT_EQ(read_to(cache, turn * 4096, to, 4096).status, Status::ok);
            EXPECT_EQ(to.bytes(), part(turn * 4096, 4096));
            EXPECT_EQ(total(cache).misses, turn + 1);
        }
    }
}

TEST_F(FileCacheTest, what_is_written_is_in_the_file_after_flush) {
    const OpenedFile file(name_);
    FileCache cache = make(file);
    Bytes expected = content_;
    std::mt19937_64 random(11);
    for (int turn = 0; turn < 40; ++turn) {
        const u64 first = turn % 4 == 0 ? random() % 200 * 4096 : random() % (kBytes - 1);
        const u64 count = 1 + random() % std::min<u64>(50'000, kBytes - first);
        const Bytes bytes = test::stamped(count, first + 8 * turn);
        std::copy(bytes.begin(), bytes.end(), expected.begin() + first);
        ASSERT_EQ(write(cache, first, bytes).status, Status::ok);
        if (turn % 10 == 5) {
            ASSERT_EQ(read(cache, 0, kBytes), expected) << "turn " << turn;
        }
    }
    ASSERT_EQ(cache.flush().status, Status::ok);
    EXPECT_EQ(test::read_file(name_), expected);
    EXPECT_EQ(std::filesystem::file_size(name_), kBytes) << "the last page is written up to the end of the file only";
}

TEST_F(FileCacheTest, whole_pages_are_not_read_before_they_are_overwritten) {
    const OpenedFile file(name_);
    FileCache cache = make(file);
    ASSERT_EQ(write(cache, 0, test::stamped(32 * 4096, 64)).status, Status::ok);
    EXPECT_EQ(total(cache).misses, 0u);
    EXPECT_EQ(cache.evidence().by_source[0].requests + cache.evidence().by_source[1].requests +
                  cache.evidence().by_source[2].requests, 0u);
    ASSERT_EQ(write(cache, 40 * 4096 + 1, Bytes(4096)).status, Status::ok);
    EXPECT_EQ(total(cache).misses, 2u) << "parts of pages are";
}

TEST_F(FileCacheTest, pinned_pages_stay_and_too_many_are_refused) {
    const OpenedFile file(name_, O_RDONLY);
    FileCache cache = make(file);
    ASSERT_EQ(cache.pin(0, 3, 40).status, Status::ok);
    read(cache, 0, kBytes);
    const u64 misses = total(cache).misses;
    read(cache, 3 * 4096, 40 * 4096);
    EXPECT_EQ(total(cache).misses, misses);
    EXPECT_EQ(cache.pin(0, 100, cache.quota() - 39).status, Status::all_pinned);
    ASSERT_EQ(cache.pin(0, 100, cache.quota() - 40).status, Status::ok);
    EXPECT_EQ(read(cache, 0, kBytes), content_) << "what is left is enough";
    EXPECT_EQ(cache.pin(0, 240, 1 << 20).status, Status::all_pinned);
    CacheWork work{};
    work.task = CacheTask::unpin;
    work.first = 3;
    work.count = 40;
    EXPECT_EQ(cache.run(0, work).status, Status::ok);
    EXPECT_EQ(cache.run(0, work).status, Status::invalid) << "they are no longer";
    EXPECT_EQ(cache.pin(0, 250, 20).status, Status::out_of_range) << "past the end; nothing stays pinned";
    EXPECT_EQ(cache.pin(0, 3, 40).status, Status::ok);
}

class PrefetchTest : public FileCacheTest {
  protected:
    PrefetchTest() {
        system_.held = true;
        file_.handle.direct_fd = -1;
    }
    FileCacheOptions options() {
        FileCacheOptions options;
        options.cache_bytes = 64 * 4096;
        options.slots = 16;
        options.wait_ns = 30'000'000'000;
        options.system = &system_;
        return options;
    }

    HeldReads system_;
    OpenedFile file_{name_};
};

TEST_F(PrefetchTest, returns_while_the_disk_still_reads) {
    if (!made_cold(name_)) GTEST_SKIP() << "this file cannot be cold";
    FileCache cache(*device_, {&file_.handle}, options());
    ASSERT_EQ(cache.run(0, {.task = CacheTask::prefetch, .first = 3, .count = 16}).status, Status::ok);
    EXPECT_EQ(total(cache).misses, 16u);
    EXPECT_EQ(cache.evidence().by_source[static_cast<std::size_t>(Source::buffered)].requests, 0u) << "none has come";
    system_.let_go();
    EXPECT_EQ(read(cache, 3 * 4096, 16 * 4096), part(3 * 4096, 16 * 4096));
    EXPECT_EQ(total(cache).misses, 16u) << "nothing is read twice";
}

TEST_F(PrefetchTest, of_more_pages_than_slots_or_frames_ends_and_what_nobody_uses_is_in_nobodys_way) {
    system_.let_go();
    FileCache cache(*device_, {&file_.handle}, options());
    ASSERT_EQ(cache.run(0, {.task = CacheTask::prefetch, .count = 200}).status, Status::ok);
    EXPECT_EQ(total(cache).failures, 0u);
    EXPECT_EQ(read(cache, 0, kBytes), content_);
    ASSERT_EQ(cache.run(0, {.task = CacheTask::prefetch, .count = 10}).status, Status::ok);
    EXPECT_EQ(cache.run(0, {.task = CacheTask::invalidate, .count = 257}).status, Status::ok);
    ASSERT_EQ(cache.run(0, {.task = CacheTask::prefetch, .count = 16}).status, Status::ok);
    ASSERT_EQ(write(cache, 100 * 4096, Bytes(5000, 1)).status, Status::ok);
    EXPECT_EQ(cache.flush().status, Status::ok) << "by a slot that a load had";
    std::fill_n(content_.begin() + 100 * 4096, 5000, static_cast<unsigned char>(1));
    EXPECT_EQ(read(cache, 0, kBytes), content_);
}

TEST_F(PrefetchTest, a_call_that_waits_for_the_disk_holds_up_none_whose_pages_are_here) {
    if (!made_cold(name_)) GTEST_SKIP() << "this file cannot be cold";
    FileCache cache(*device_, {&file_.handle}, options());
    system_.let_go();
    EXPECT_EQ(read(cache, 0, 8 * 4096), part(0, 8 * 4096));
    const OnDevice to(*device_, 7 * 4096);  // allocated before: CUDA frees memory when all kernels have ended
    system_.held = true;
    std::atomic<bool> over{false};
    std::thread waits([&] {
        EXPECT_EQ(read(cache, 100 * 4096, 4096), part(100 * 4096, 4096));
        over = true;
    });
    while (system_.waiting == 0) std::this_thread::yield();
    for (int turn = 0; turn < 10; ++turn)
        EXPECT_EQ(read_to(cache, 4096 * (turn % 2), to, 7 * 4096).status, Status::ok);
    EXPECT_EQ(to.bytes(), part(4096, 7 * 4096));
    EXPECT_FALSE(over);
    system_.let_go();
    waits.join();
}

// Each call gets its own failure, though others fail in the same way meanwhile.
TEST_F(PrefetchTest, calls_that_fail_at_once_are_told_of_their_own_pages) {
    if (!made_cold(name_)) GTEST_SKIP() << "this file cannot be cold";
    system_.let_go();
    FileCache cache(*device_, {&file_.handle}, options());
    system_.failing = true;
    std::vector<std::thread> threads;
    for (u64 page : {10, 60, 110, 160, 210, 250})
        threads.emplace_back([&, page] {
            const OnDevice to(*device_, 4096);
            const auto failure = read_to(cache, page * 4096, to, 4096);
            EXPECT_EQ(failure.status, Status::io_error);
            EXPECT_EQ(failure.where, page);
            const auto at = [&](const ServedFailure& one) { return one.offset_bytes == page * 4096; };
            EXPECT_EQ(std::count_if(failure.storage.begin(), failure.storage.end(), at), 1) << page;
        });
    for (auto& thread : threads) thread.join();
    system_.failing = false;
    EXPECT_EQ(read(cache, 0, kBytes), content_);
}

TEST_F(FileCacheTest, a_cache_of_one_page_works) {
    const OpenedFile file(name_);
    FileCache cache = make(file, 1);
    EXPECT_EQ(read(cache, 100, 20'000), part(100, 20'000));
    ASSERT_EQ(write(cache, 5, Bytes(9000, 1)).status, Status::ok);
    ASSERT_EQ(cache.flush().status, Status::ok);
    EXPECT_EQ(read(cache, 5, 9000), Bytes(9000, 1));
    EXPECT_EQ(cache.pin(0, 0, 1).status, Status::all_pinned);
}

TEST_F(FileCacheTest, pages_of_every_size) {
    const OpenedFile file(name_, O_RDONLY);
    for (const u64 page_bytes : {512ull, 65536ull, 2ull << 20}) {
        FileCache cache = make(file, 8, page_bytes);
        EXPECT_EQ(read(cache, 0, kBytes), content_) << page_bytes;
    }
    for (const u64 page_bytes : {0ull, 256ull, 3000ull, 4ull << 20}) EXPECT_THROW(make(file, 8, page_bytes), Error);
}

TEST_F(FileCacheTest, a_file_that_may_not_be_written_is_not) {
    for (const bool may : {false, true}) {
        const OpenedFile file(name_, may ? O_RDWR : O_RDONLY);
        FileCache cache = make(file);
        EXPECT_EQ(write(cache, 0, Bytes(10)).status, may ? Status::ok : Status::read_only);
        EXPECT_EQ(cache.flush().status, Status::ok) << "there is nothing to write, or it is written";
        if (may) std::fill_n(content_.begin(), 10, static_cast<unsigned char>(0));
        EXPECT_EQ(test::read_file(name_), content_);
    }
}

TEST_F(FileCacheTest, a_file_cut_short_underneath_is_a_status) {
    const OpenedFile file(name_);
    FileCache cache = make(file);
    const OnDevice to(*device_, kBytes);
    EXPECT_EQ(read_to(cache, 0, to, kBytes).status, Status::ok) << "control: it is whole";
    ASSERT_EQ(cache.run(0, {.task = CacheTask::invalidate, .count = kBytes / 4096 + 1}).status, Status::ok);
    std::filesystem::resize_file(name_, 500'000);
    EXPECT_EQ(read_to(cache, 0, to, kBytes).status, Status::truncated);
    EXPECT_EQ(read(cache, 0, 400'000), part(0, 400'000));
}

TEST_F(FileCacheTest, files_are_mapped_for_gpus_where_they_are_in_memory) {
    const OpenedFile file(name_);
    const FileMapping here(*device_, &file.handle, layout_of(&file.handle, 4096));
    const bool emulated = device_->info().emulated;
    if (emulated) {
        EXPECT_EQ(here.data(), nullptr);
        EXPECT_NE(here.refusal().find("emulated"), std::string::npos);
    }
    const std::string name = "/dev/shm/penstock-test-" + std::to_string(::getpid());
    test::write_file(name, content_);
    const OpenedFile in_memory(name);
    std::filesystem::remove(name);
    FileCache cache(*device_, {&in_memory.handle, &file.handle}, {});
    EXPECT_EQ(cache.mapped(0), !emulated) << cache.mapping_refusal(0);
    EXPECT_EQ(read(cache, 0, kBytes), content_);
    ASSERT_EQ(write(cache, 4000, Bytes(10'000, 3)).status, Status::ok);
    ASSERT_EQ(cache.flush().status, Status::ok);
    Bytes got(10'000);
    ASSERT_EQ(::pread(in_memory.fd.get(), got.data(), got.size(), 4000), static_cast<ssize_t>(got.size()));
    EXPECT_EQ(got, Bytes(10'000, 3));
    ASSERT_EQ(cache.run(0, {.task = CacheTask::invalidate, .count = kBytes / 4096 + 1}).status, Status::ok);
    ASSERT_EQ(::ftruncate(in_memory.fd.get(), 500'000), 0);
    const OnDevice to(*device_, 8192);
    const auto cut = read_to(cache, 900'000, to, 8192);
    EXPECT_EQ(cut.status, Status::truncated) << "a GPU has the pages that the file lost, and reads them";
    ASSERT_FALSE(cut.storage.empty());
    EXPECT_EQ(cut.storage[0].file, 0u);
    EXPECT_EQ(cache.flush().status, emulated ? Status::ok : Status::truncated) << "what went to them is lost";
    EXPECT_EQ(cache.take_failure(), emulated ? Status::ok : Status::truncated);
}

TEST_F(FileCacheTest, advice_and_policies) {
    const OpenedFile file(name_, O_RDONLY);
    for (const Replacement policy : {Replacement::sweep_resistant, Replacement::clock, Replacement::fifo,
                                     Replacement::pinned_range}) {
        FileCacheOptions options;
        options.cache_bytes = 128 * 4096;
        options.replacement = policy;
        FileCache cache(*device_, {&file.handle}, options);
        CacheWork work{};
        work.task = policy == Replacement::pinned_range ? CacheTask::keep : CacheTask::advise;
        work.first = policy == Replacement::pinned_range ? 0 : static_cast<u64>(Advice::sweep);
        work.count = 100;
        ASSERT_EQ(cache.run(0, work).status, Status::ok);
        for (int sweep = 0; sweep < 8; ++sweep) ASSERT_EQ(read(cache, 0, kBytes), content_);
        const Tally tally = total(cache);
        const double rate = 1.0 * static_cast<double>(tally.hits) / static_cast<double>(tally.hits + tally.misses);
        const bool keeps = policy == Replacement::sweep_resistant || policy == Replacement::pinned_range;
        EXPECT_EQ(rate > 0.2, keeps) << rate << " by policy " << static_cast<int>(policy);
    }
}

}  // namespace
}  // namespace penstock::ondevice
