// A soak: it uses page caches of every shape at random, over files that are bad now and then, and compares with bytes
// in memory.
//
// It runs for PENSTOCK_SOAK_SECONDS (2 if that is not set) from PENSTOCK_SOAK_SEED on, on the emulated device or the
// one that PENSTOCK_TEST_DEVICE names. A failure names the seed of its round, which alone decides what the round does.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>

#include "context/test_files.hpp"
#include "ondevice/cache/file_cache.hpp"
#include "ondevice/device_rig.hpp"
#include "ondevice/service/bad_system_rig.hpp"
#include "ondevice/service/striped_rig.hpp"

namespace penstock::ondevice {
namespace {

constexpr int kTurns = 40;  // that a round has

u64 setting(const char* name, u64 otherwise) {
    const char* value = std::getenv(name);
    return value != nullptr ? std::strtoull(value, nullptr, 10) : otherwise;
}

// One cache, from its construction to its end.
class Round {
  public:
    Round(Device& device, const std::string& folder, u64 seed) : device_(device), random_(seed) {
        const u64 page = u64{512} << below(8);
        options_.page_bytes = page;
        options_.cache_bytes = page * (1 + below(below(4) == 0 ? 4 : 300));
        options_.replacement = static_cast<Replacement>(below(4));
        options_.threads = static_cast<u32>(1 + below(4));
        options_.slots = static_cast<u32>(options_.threads + below(below(2) == 0 ? 4 : 200));
        options_.wait_ns = 20'000'000'000;
        options_.system = &days_;
        for (u64 arrays = 1 + below(2); arrays > 0; --arrays) {
            const u64 files = 1 + below(3), stripe = page << below(3);
            std::string stem = folder;
            stem.append("/").append(std::to_string(arrays)).append("-");
            arrays_.push_back({striped_names(stem, files, stripe), test::stamped(4 * page * files + below(1 << 21))});
            Stored& one = arrays_.back();
            one.names.write(one.bytes);
            one.opened = std::make_unique<OpenedSet>(one.names);
            if (below(3) != 0) continue;
            for (const auto& file : one.opened->files) {
                ::fdatasync(file->handle.buffered_fd);
                ::posix_fadvise(file->handle.buffered_fd, 0, 0, POSIX_FADV_DONTNEED);
            }
        }
    }

    void run(int turns) {
        std::vector<FileSet> sets;
        for (const Stored& one : arrays_) sets.push_back(one.opened->set);
        cache_ = std::make_unique<FileCache>(device_, sets, options_);
        while (turns-- > 0 && !testing::Test::HasFatalFailure()) turn();
        days_.good();
        for (const Pinned& pins : pinned_) unpin(pins);
        ASSERT_EQ(cache_->flush().status, Status::ok);
        cache_.reset();
        ASSERT_TRUE(files_are_right()) << "after the last flush";
    }

    bool files_are_right() const {
        return std::all_of(arrays_.begin(), arrays_.end(),
                           [](const Stored& one) { return one.names.read() == one.bytes; });
    }
    const std::string& a_file() const { return arrays_.front().names.names.front(); }

    unsigned injected() const { return days_.injected; }

  private:
    struct Stored {
        StripedNames names;
        FileBytes bytes;
        std::unique_ptr<OpenedSet> opened = {};
    };
    struct Pinned {
        u32 array;
        u64 first, pages;
    };

    u64 below(u64 bound) { return random_() % bound; }

    void turn() {
        const auto array = static_cast<u32>(below(arrays_.size()));
        switch (below(12)) {
            case 0: return days();
            case 1: return pin(array);
            case 2: return hints(array);
            case 3: return flush();
            case 4: return beyond(array);
            case 5:
            case 6: return range(array, true);
            case 7: return rows(array, true);
            case 8:
            case 9: return rows(array, false);
            default: return range(array, false);
        }
    }

    void days() {
        days_.good();
        if (below(2) == 0) return;
        // Syncs do not fail, since after that no flush could succeed.
        std::atomic<unsigned>* const kinds[] = {&days_.interrupts, &days_.shortens, &days_.delays, &days_.fails_read,
                                                &days_.fails_write};
        for (u64 some = 1 + below(3); some > 0; --some) *kinds[below(5)] = static_cast<unsigned>(2 + below(40));
        days_.full_at_times = below(4) == 0;
    }

    // Does work that may fail on a bad day and not on a good one. The second try does all of it again.
    template <class Work>
    void must(const Work& work) {
        FileCache::Failure failure = work();
        if (failure.status == Status::io_error) {
            days_.good();
            failure = work();
        }
        ASSERT_EQ(failure.status, Status::ok) << words(failure.status) << " at " << failure.where;
    }

    void range(u32 array, bool stores) {
        FileBytes& bytes = arrays_[array].bytes;
        const u64 first = below(bytes.size()), most = std::min<u64>(bytes.size() - first, 1 << (9 + below(12)));
        const u64 count = 1 + below(most);
        const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(first);
        if (stores) {
            const FileBytes fresh = test::stamped(count, below(1000));
            const OnDevice from(device_, fresh.data(), count);
            const CacheWork work{.task = CacheTask::write, .first = first, .count = count, .memory = from.data()};
            must([&] { return cache_->run(array, work); });
            std::copy(fresh.begin(), fresh.end(), at);
        } else {
            const OnDevice to(device_, count);
            const CacheWork work{.task = CacheTask::read, .first = first, .count = count, .memory = to.data()};
            must([&] { return cache_->run(array, work); });
            ASSERT_TRUE(to.bytes() == FileBytes(at, at + static_cast<std::ptrdiff_t>(count))) << first << "+" << count;
        }
    }

    // Moves random rows; stores each row at most once.
    void rows(u32 array, bool stores) {
        FileBytes& bytes = arrays_[array].bytes;
        const u64 row_bytes = 1 + below(std::min<u64>(bytes.size(), 2048)), all = bytes.size() / row_bytes;
        std::vector<u64> chosen(1 + below(3000));
        for (u64& row : chosen) row = below(all);
        if (stores) {
            std::sort(chosen.begin(), chosen.end());
            chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
            std::shuffle(chosen.begin(), chosen.end(), random_);
        }
        const FileBytes fresh = test::stamped(chosen.size() * row_bytes, below(1000));
        const OnDevice memory(device_, fresh.data(), fresh.size());
        const OnDevice indices(device_, chosen.data(), chosen.size() * sizeof(u64));
        CacheWork work{};
        work.task = stores ? CacheTask::scatter : CacheTask::gather;
        work.rows = reinterpret_cast<const u64*>(indices.data());
        work.count = chosen.size();
        work.row_bytes = row_bytes;
        work.memory = memory.data();
        must([&] { return cache_->run(array, work); });
        const FileBytes got = stores ? fresh : memory.bytes();
        for (std::size_t i = 0; i < chosen.size(); ++i) {
            const auto there = bytes.begin() + static_cast<std::ptrdiff_t>(chosen[i] * row_bytes);
            const auto here = got.begin() + static_cast<std::ptrdiff_t>(i * row_bytes);
            const auto end = here + static_cast<std::ptrdiff_t>(row_bytes);
            if (stores) {
                std::copy(here, end, there);
            } else {
                ASSERT_TRUE(std::equal(here, end, there)) << "row " << chosen[i] << " of " << row_bytes << " bytes";
            }
        }
    }

    u64 pages(u32 array) const { return (arrays_[array].bytes.size() + options_.page_bytes - 1) / options_.page_bytes; }

    void pin(u32 array) {
        if (!pinned_.empty() && below(2) == 0) {
            unpin(pinned_.back());
            pinned_.pop_back();
            return;
        }
        const u64 first = below(pages(array)), count = 1 + below(std::min<u64>(pages(array) - first, 40));
        const FileCache::Failure failure = cache_->pin(array, first, count);
        if (failure.status == Status::ok) return pinned_.push_back({array, first, count});
        const bool refused = failure.status == Status::all_pinned || failure.status == Status::io_error;
        ASSERT_TRUE(refused) << words(failure.status);
    }
    void unpin(const Pinned& pins) {
        const CacheWork work{.task = CacheTask::unpin, .first = pins.first, .count = pins.pages};
        ASSERT_EQ(cache_->run(pins.array, work).status, Status::ok);
    }

    void hints(u32 array) {
        const u64 first = below(pages(array)), count = 1 + below(std::min<u64>(pages(array) - first, 40));
        if (below(2) == 0) {
            ASSERT_EQ(cache_->run(array, {.task = CacheTask::advise, .first = below(4)}).status, Status::ok);
        } else {
            must([&] { return cache_->run(array, {.task = CacheTask::prefetch, .first = first, .count = count}); });
        }
    }

    void flush() {
        must([&] { return cache_->flush(); });
        ASSERT_TRUE(files_are_right()) << "after a flush";
    }

    void beyond(u32 array) {
        const OnDevice memory(device_, 64);
        const u64 end = arrays_[array].bytes.size();
        const CacheWork over{.task = CacheTask::read, .first = end - 1, .count = 2, .memory = memory.data()};
        ASSERT_EQ(cache_->run(array, over).status, Status::out_of_range);
        const CacheWork behind{.task = CacheTask::write, .first = end, .count = 1, .memory = memory.data()};
        ASSERT_EQ(cache_->run(array, behind).status, Status::out_of_range);
    }

    Device& device_;
    std::mt19937_64 random_;
    BadDays days_;
    FileCacheOptions options_;
    std::vector<Stored> arrays_;
    std::vector<Pinned> pinned_;
    std::unique_ptr<FileCache> cache_;
};

TEST(Soak, control_one_wrong_byte_in_a_file_is_found) {
    const auto device = test_device();
    const test::TempDirectory directory;
    Round round(*device, directory.file("."), 1);
    round.run(kTurns);
    ASSERT_TRUE(round.files_are_right());
    std::fstream file(round.a_file(), std::ios::binary | std::ios::in | std::ios::out);
    const int byte = file.get();
    file.seekp(0).put(static_cast<char>(byte ^ 1));
    file.close();
    EXPECT_FALSE(round.files_are_right());
}

TEST(Soak, caches_of_every_shape_used_at_random_lose_nothing) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::seconds(setting("PENSTOCK_SOAK_SECONDS", 2));
    const auto device = test_device();
    u64 rounds = 0, injected = 0;
    for (u64 seed = setting("PENSTOCK_SOAK_SEED", 1); rounds < 2 || Clock::now() < end; ++seed, ++rounds) {
        const test::TempDirectory directory;
        Round round(*device, directory.file("."), seed);
        round.run(kTurns);
        injected += round.injected();
        ASSERT_FALSE(HasFailure()) << "PENSTOCK_SOAK_SEED=" << seed;
    }
    EXPECT_TRUE(injected > 0 || rounds < 10) << "no bad day";
    std::printf("%llu rounds of %d turns, %llu injected faults\n", static_cast<unsigned long long>(rounds), kTurns,
                static_cast<unsigned long long>(injected));
}

}  // namespace
}  // namespace penstock::ondevice
