// Residency after known actions: written pages are in the cache, dropped ones are not, and both sources agree.
#include "os/file/residency.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "os/file/file_stat.hpp"
#include "os/test_file.hpp"
#include "penstock/error.hpp"

namespace penstock::os {
namespace {

constexpr std::uint64_t kBytes = 8 * kMiB;

// Returns whether pages can leave the cache here. tmpfs, and overlays over it, keep them.
bool cache_can_be_dropped(const TestFile& file) { return file_stat(file.fd(), "x").file_system != "tmpfs"; }

TEST(Residency, is_full_after_writing_and_empty_after_drop_cache) {
    const TestFile file(disk_folder(), kBytes);
    if (!cache_can_be_dropped(file)) GTEST_SKIP() << disk_folder() << " is tmpfs, which is the page cache itself";
    EXPECT_DOUBLE_EQ(residency(file.fd(), 0, kBytes).fraction(), 1.0);
    drop_cache(real_system(), file.fd(), "x");
    EXPECT_LT(residency(file.fd(), 0, kBytes).fraction(), 0.05);
}

TEST(Residency, of_half_a_dropped_file_shows_which_half) {
    const TestFile file(disk_folder(), kBytes);
    if (!cache_can_be_dropped(file)) GTEST_SKIP() << disk_folder() << " is tmpfs, which is the page cache itself";
    drop_cache(real_system(), file.fd(), "x", {kBytes / 2, kBytes / 2});
    std::string used;
    const auto windows = residency_windows(file.fd(), {0, kBytes}, used);
    ASSERT_EQ(windows.size(), 8u);
    for (const ResidencyWindow& window : windows) {
        EXPECT_NEAR(window.resident_fraction(), window.offset_bytes < kBytes / 2 ? 1.0 : 0.0, 0.05)
            << window.offset_bytes;
    }
}

TEST(Residency, by_mincore_agrees_with_cachestat) {
    const TestFile file(disk_folder(), kBytes);
    drop_cache(real_system(), file.fd(), "x", {2 * kMiB, 3 * kMiB});
    Residency by_cachestat;
    try {
        by_cachestat = residency(file.fd(), 0, kBytes, ResidencySource::cachestat);
    } catch (const Error& error) {
        GTEST_SKIP() << error.what();
    }
    const Residency by_mincore = residency(file.fd(), 0, kBytes, ResidencySource::mincore);
    EXPECT_EQ(by_cachestat.source, "cachestat");
    EXPECT_EQ(by_mincore.source, "mincore");
    EXPECT_EQ(by_mincore.pages, by_cachestat.pages);
    EXPECT_EQ(by_mincore.sampled_pages, by_cachestat.sampled_pages);
    EXPECT_EQ(by_mincore.resident_pages, by_cachestat.resident_pages);
}

TEST(Residency, tells_dirty_pages_from_clean_ones) {
    const TestFile file(disk_folder(), kBytes);
    const Residency dirty = residency(file.fd(), 0, kBytes);
    if (dirty.source != "cachestat") GTEST_SKIP() << "only cachestat tells dirty pages";
    if (!cache_can_be_dropped(file)) GTEST_SKIP() << disk_folder() << " is tmpfs";
    ASSERT_EQ(::fdatasync(file.fd()), 0);
    EXPECT_EQ(residency(file.fd(), 0, kBytes).dirty_pages, 0u);
    ASSERT_EQ(::pwrite(file.fd(), "x", 1, 0), 1);
    EXPECT_GE(residency(file.fd(), 0, kBytes).dirty_pages, 1u);
}

TEST(Residency, is_cut_at_the_end_of_the_file_and_counts_touched_pages) {
    const TestFile file(shm_folder(), 3 * 65'536 + 1);
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    EXPECT_EQ(residency(file.fd(), 0, kGiB).pages, 3 * 65'536 / page + 1);
    EXPECT_EQ(residency(file.fd(), page - 1, 2).pages, 2u);
    EXPECT_EQ(residency(file.fd(), kGiB, 5).pages, 0u);
}

TEST(Residency, of_a_large_file_is_sampled_over_all_of_it) {
    const TestFile file(shm_folder(), 1);
    ASSERT_EQ(::ftruncate(file.fd(), static_cast<off_t>(10 * kGiB)), 0);
    std::string used;
    const auto windows = residency_windows(file.fd(), {0, 10 * kGiB}, used);
    ASSERT_EQ(windows.size(), 64u);
    std::uint64_t at = 0;
    for (const ResidencyWindow& window : windows) {
        EXPECT_EQ(window.offset_bytes, at);
        at += window.bytes;
    }
    EXPECT_EQ(at, 10 * kGiB);
    const Residency sum = residency(file.fd(), 0, 10 * kGiB);
    EXPECT_LE(sum.sampled_pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)), 65 * kMiB);
    EXPECT_EQ(sum.resident_pages, 0u);
}

TEST(Residency, of_a_short_range_is_one_number) {
    const TestFile file(disk_folder(), kBytes);
    const std::optional<double> all = cached_fraction(file.fd(), 4096, 64 * kKiB);
    if (!all) GTEST_SKIP() << "no cachestat here";
    EXPECT_DOUBLE_EQ(*all, 1.0);
    EXPECT_DOUBLE_EQ(cached_fraction(file.fd(), 100, 4096).value(), 1.0) << "of all pages that the range touches";
    EXPECT_FALSE(cached_fraction(-1, 0, 1).has_value());
    if (!cache_can_be_dropped(file)) return;
    drop_cache(real_system(), file.fd(), "x");
    EXPECT_DOUBLE_EQ(cached_fraction(file.fd(), 4096, 64 * kKiB).value(), 0.0);
}

// Makes the calling thread another user for file access, within this scope.
class AsNobody {
  public:
    AsNobody() { ::setfsuid(65534); }
    ~AsNobody() { ::setfsuid(0); }
    AsNobody(const AsNobody&) = delete;
    AsNobody& operator=(const AsNobody&) = delete;
};

// For such a file mincore says "resident" of every page, and cachestat is refused.
TEST(Residency, of_a_file_that_is_neither_owned_nor_writable_is_an_error_and_not_full) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can act for another user";
    const TestFile file(disk_folder(), kBytes);
    if (!cache_can_be_dropped(file)) GTEST_SKIP() << disk_folder() << " is tmpfs";
    drop_cache(real_system(), file.fd(), "x");
    ASSERT_EQ(::fchmod(file.fd(), 0644), 0);
    const UniqueFd reader(::open(("/proc/self/fd/" + std::to_string(file.fd())).c_str(), O_RDONLY | O_CLOEXEC));
    for (const ResidencySource source : {ResidencySource::automatic, ResidencySource::mincore}) {
        const AsNobody other;
        try {
            const Residency found = residency(reader.get(), 0, kBytes, source);
            FAIL() << found.source << " says that " << found.resident_pages << " pages are resident";
        } catch (const Error& error) {
            EXPECT_EQ(error.info().code, ErrorCode::permission_denied) << error.what();
            EXPECT_FALSE(error.info().advice.empty());
        }
    }
    ASSERT_EQ(::fchmod(file.fd(), 0666), 0);  // now the file is writable, so the kernel answers
    const AsNobody other;
    EXPECT_LT(residency(reader.get(), 0, kBytes).fraction(), 0.05);
    EXPECT_LT(residency(reader.get(), 0, kBytes, ResidencySource::mincore).fraction(), 0.05);
}

TEST(Residency, of_no_file_is_an_error) { EXPECT_THROW(residency(-1, 0, 1), Error); }

class FailingSync final : public System {
  public:
    int fdatasync(int) override {
        errno = ++calls_ < 3 ? EINTR : EIO;
        return -1;
    }

  private:
    int calls_ = 0;
};

TEST(DropCache, reports_a_failed_sync_with_file_and_range_and_goes_on_after_eintr) {
    const TestFile file(disk_folder(), 4096);
    FailingSync system;
    try {
        drop_cache(system, file.fd(), "data.bin", {0, 4096});
        FAIL() << "no error";
    } catch (const Error& error) {
        EXPECT_EQ(error.info().system_code, EIO);
        EXPECT_EQ(error.info().file, "data.bin");
        EXPECT_EQ(error.info().length_bytes, 4096u);
    }
}

}  // namespace
}  // namespace penstock::os
