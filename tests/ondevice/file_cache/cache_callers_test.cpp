// Several threads call the owner of one page cache at once, on the emulated device or the one that PENSTOCK_TEST_DEVICE
// names. Each thread knows the rows that it alone stores to; they lie on pages with others' rows.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstring>
#include <fstream>
#include <random>
#include <system_error>
#include <thread>

#include "context/test_files.hpp"
#include "ondevice/cache/file_cache.hpp"
#include "ondevice/device_rig.hpp"
#include "ondevice/service/bad_system_rig.hpp"
#include "ondevice/service/opened_file_rig.hpp"

namespace penstock::ondevice {
namespace {

using Bytes = std::vector<unsigned char>;

constexpr u64 kRowBytes = 72, kRows = 4000, kPage = 1024, kCallers = 5;

// One of these threads.
class CacheCaller {
  public:
    CacheCaller(Device& device, FileCache& cache, u64 self)
        : device_(device), cache_(cache), self_(self), random_(self) {}

    void run(int turns) {
        device_.enter_thread();
        while (turns-- > 0 && !testing::Test::HasFailure()) turn();
    }
    // Puts what the file must hold of this thread's rows into `file`.
    void put_into(Bytes& file) const {
        for (u64 row = self_; row < kRows; row += kCallers)
            for (u64 i = 0; i < kRowBytes; ++i) file[row * kRowBytes + i] = byte(row, i);
    }
    u64 failed() const { return failed_; }

  private:
    u64 below(u64 bound) { return random_() % bound; }
    unsigned char byte(u64 row, u64 i) const {
        return static_cast<unsigned char>(row * 7 + i + versions_[row / kCallers] * 31);
    }
    std::vector<u64> some_rows() {
        std::vector<u64> rows;
        for (u64 row = self_ + below(40) * kCallers; row < kRows; row += kCallers * (1 + below(30)))
            rows.push_back(row);
        std::shuffle(rows.begin(), rows.end(), random_);
        return rows;
    }
    void turn() {
        switch (below(10)) {
            case 0: return pin();
            case 1: return with_pages(CacheTask::prefetch);
            case 2: return with_pages(CacheTask::invalidate);
            case 3: return flush();
            case 4: return read();
            case 5:
            case 6: return scatter();
            default: return gather();
        }
    }
    // Whether the failure may be: a bad day may end a call. The thread must then store its rows again.
    bool sound(const FileCache::Failure& failure) {
        const bool bad_day = failure.status == Status::io_error;
        failed_ += bad_day ? 1 : 0;
        EXPECT_TRUE(failure.status == Status::ok || bad_day) << words(failure.status) << " at " << failure.where;
        return failure.status == Status::ok;
    }
    FileCache::Failure move(CacheTask task, const std::vector<u64>& rows, const OnDevice& memory) {
        const OnDevice indices(device_, rows.data(), rows.size() * sizeof(u64));
        CacheWork work{};
        work.task = task;
        work.rows = reinterpret_cast<const u64*>(indices.data());
        work.count = rows.size();
        work.row_bytes = kRowBytes;
        work.memory = memory.data();
        return cache_.run(0, work);
    }
    void gather() {
        const std::vector<u64> rows = some_rows();
        const OnDevice to(device_, rows.size() * kRowBytes);
        if (!sound(move(CacheTask::gather, rows, to))) return;
        const Bytes got = to.bytes();
        for (u64 place = 0; place < rows.size(); ++place) check(got, place * kRowBytes, rows[place]);
    }
    void scatter() {
        const std::vector<u64> rows = some_rows();
        Bytes fresh;
        for (const u64 row : rows) {
            ++versions_[row / kCallers];
            for (u64 i = 0; i < kRowBytes; ++i) fresh.push_back(byte(row, i));
        }
        const OnDevice from(device_, fresh.data(), fresh.size());
        while (!sound(move(CacheTask::scatter, rows, from)) && !testing::Test::HasFailure()) {
        }
    }
    u64 hits_and_misses() {
        u64 sum = 0;
        for (const CacheCounts& each : cache_.counts()) sum += each.tally.hits + each.tally.misses;
        return sum;
    }
    void flush() {
        const u64 counted = hits_and_misses();  // while other threads count
        sound(cache_.flush());
        EXPECT_GE(hits_and_misses(), counted);
    }
    void read() {
        const u64 row = self_ + below(kRows / kCallers) * kCallers;
        const OnDevice to(device_, kRowBytes);
        CacheWork work{};
        work.task = CacheTask::read;
        work.first = row * kRowBytes;
        work.count = kRowBytes;
        work.memory = to.data();
        if (sound(cache_.run(0, work))) check(to.bytes(), 0, row);
    }
    void check(const Bytes& got, u64 at, u64 row) const {
        for (u64 i = 0; i < kRowBytes; ++i)
            if (got[at + i] != byte(row, i)) return ADD_FAILURE() << "byte " << i << " of row " << row, void();
    }
    void pin() {
        const u64 first = below(200), pages = 1 + below(6);
        const auto failure = cache_.pin(0, first, pages);
        if (failure.status == Status::all_pinned || !sound(failure)) return;
        gather();
        CacheWork work{};
        work.task = CacheTask::unpin;
        work.first = first;
        work.count = pages;
        sound(cache_.run(0, work));
    }
    void with_pages(CacheTask task) {
        CacheWork work{};
        work.task = task;
        work.first = below(200);
        work.count = 1 + below(20);
        const auto failure = cache_.run(0, work);
        if (task != CacheTask::invalidate || failure.status != Status::busy) sound(failure);
    }

    Device& device_;
    FileCache& cache_;
    const u64 self_;
    std::mt19937_64 random_;
    std::vector<u64> versions_ = std::vector<u64>(kRows / kCallers + 1);
    u64 failed_ = 0;
};

class CacheCallersTest : public testing::Test {
  protected:
    // Runs the callers and checks the files' bytes. Returns how many calls failed.
    u64 run(BadDays& system, u64 frames) {
        Bytes content(kRows * kRowBytes);
        const OpenedFile* const file = written(content);
        FileCacheOptions options;
        options.page_bytes = kPage;
        options.cache_bytes = frames * kPage;
        options.threads = 2;
        options.wait_ns = 60'000'000'000;
        options.system = &system;
        options.map = false;
        FileCache cache(*device_, {&file->handle}, options);
        std::vector<CacheCaller> callers;
        for (u64 self = 0; self < kCallers; ++self) callers.emplace_back(*device_, cache, self);
        std::vector<std::thread> threads;
        for (CacheCaller& caller : callers) threads.emplace_back([&caller] { caller.run(60); });
        for (std::thread& thread : threads) thread.join();
        system.good();
        EXPECT_EQ(cache.flush().status, Status::ok);
        u64 failed = 0;
        for (const CacheCaller& caller : callers) {
            caller.put_into(content);
            failed += caller.failed();
        }
        EXPECT_EQ(test::read_file(name_), content);
        return failed;
    }

    std::string name_of(u64 bytes) const {
        test::write_file(name_, Bytes(bytes));
        return name_;
    }

    std::shared_ptr<Device> device_ = test_device();

  private:
    // Writes a new file, which has version 0 of every row.
    const OpenedFile* written(Bytes& content) {
        for (u64 row = 0; row < kRows; ++row)
            for (u64 i = 0; i < kRowBytes; ++i)
                content[row * kRowBytes + i] = static_cast<unsigned char>(row * 7 + i);
        test::write_file(name_, content);
        file_ = std::make_unique<OpenedFile>(name_);
        file_->handle.direct_fd = -1;
        return file_.get();
    }

    test::TempDirectory directory_;
    const std::string name_ = directory_.file("rows");
    std::unique_ptr<OpenedFile> file_;
};

TEST_F(CacheCallersTest, each_finds_what_it_stored_whatever_others_do) {
    for (const u64 frames : {70, 16}) {
        BadDays days;
        EXPECT_EQ(run(days, frames), 0u);
    }
}

TEST_F(CacheCallersTest, and_where_writes_fail_now_and_then) {
    BadDays days;
    days.fails_write = 40;
    days.interrupts = 7;
    days.shortens = 11;
    EXPECT_GT(run(days, 70), 0u);
    EXPECT_GT(days.injected, 0u);
}

// One of several threads that ask gets the failure of a user's kernel.
TEST_F(CacheCallersTest, a_failure_is_told_to_one_of_all_who_ask_at_once) {
    constexpr int kRounds = 300, kAsking = 4;
    if (!device_->info().emulated) GTEST_SKIP() << "the kernel here is this thread";
    const OpenedFile file(name_of(4096));
    FileCache cache(*device_, {&file.handle}, {.page_bytes = 512, .cache_bytes = 8 * 512});
    std::atomic<int> told{0};
    std::barrier round(kAsking, [&]() noexcept { static_cast<void>(u32{StoredArray<u32>(*cache.ref(0))[1 << 20]}); });
    std::vector<std::thread> threads;
    for (int self = 0; self < kAsking; ++self) {
        threads.emplace_back([&] {
            for (int turn = 0; turn < kRounds; ++turn) {
                round.arrive_and_wait();
                if (cache.take_failure() == Status::out_of_range) ++told;
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(told, kRounds);
}

// A kernel fails as soon as the last failure was taken, while another thread asks again and again.
TEST_F(CacheCallersTest, a_failure_that_comes_while_somebody_asks_is_told) {
    if (!device_->info().emulated) GTEST_SKIP() << "the kernel here is a thread";
    const OpenedFile file(name_of(4096));
    FileCache cache(*device_, {&file.handle}, {.page_bytes = 512, .cache_bytes = 8 * 512});
    std::atomic<bool> over{false};
    int failed = 0, told = 0;
    std::thread kernel([&] {
        while (!over) {
            if (__atomic_load_n(cache.ref(0)->status, __ATOMIC_ACQUIRE) != 0) {
                std::this_thread::yield();
                continue;
            }
            ++failed;
            static_cast<void>(u32{StoredArray<u32>(*cache.ref(0))[1 << 20]});
        }
    });
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(8);
    while (told < 40'000 && std::chrono::steady_clock::now() < end) {
        const bool one = cache.take_failure() == Status::out_of_range;
        told += one;
        if (!one) std::this_thread::yield();
    }
    over = true;
    kernel.join();
    told += cache.take_failure() == Status::out_of_range;
    EXPECT_GT(told, 0);
    EXPECT_EQ(told, failed);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // both need address space of their own
// Ends the process. Its exit code is 0 if a page cache whose device gets no more threads reads what is in the file.
void read_where_no_thread_is_to_be_had() {
    const test::TempDirectory directory;
    Bytes content(100 * kPage);
    for (u64 at = 0; at < content.size(); ++at) content[at] = static_cast<unsigned char>(at / kPage + at);
    test::write_file(directory.file("rows"), content);
    const OpenedFile file(directory.file("rows"));
    const auto device = make_device("host");
    FileCache cache(*device, {&file.handle}, {.page_bytes = kPage, .cache_bytes = 64 * kPage, .map = false});
    const OnDevice to(*device, content.size());
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t limit = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + (64 << 20);
    const rlimit room{limit, limit};
    ::setrlimit(RLIMIT_AS, &room);
    std::vector<std::thread> all;
    try {
        for (;;) all.emplace_back([] { ::pause(); });
    } catch (const std::system_error&) {
    }
    CacheWork work{};
    work.task = CacheTask::read;
    work.count = content.size();
    work.memory = to.data();
    const bool done = cache.run(0, work).status == Status::ok;
    ::_exit(done && !all.empty() && std::memcmp(to.data(), content.data(), work.count) == 0 ? 0 : 1);
}

TEST(CacheCallersDeathTest, where_no_thread_is_to_be_had_the_caller_does_all_of_the_work) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(read_where_no_thread_is_to_be_had(), testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace penstock::ondevice
