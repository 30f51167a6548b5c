// A process that has no descriptor left: an open file takes two and a ring of io_uring one. What cannot be had is an
// error that says so, or another way on record; nothing is slower for the rest of its life without a word.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <vector>

#include "context/seams.hpp"
#include "context/test_files.hpp"
#include "os/fd.hpp"
#include "os/system.hpp"

namespace penstock {
namespace {

using test::fetch;
using test::stamped;
using test::TempDirectory;
using test::write_file;

// Has no descriptor for O_DIRECT, as when other threads took the last one in between.
class OneDescriptor : public os::System {
  public:
    int open(const char* name, int flags, unsigned mode) override {
        if (number == 0 || (flags & O_DIRECT) == 0) return System::open(name, flags, mode);
        errno = number;
        return -1;
    }
    // With `cached_fd` the file system takes O_DIRECT and reads by the page cache all the same.
    ssize_t pread(int fd, void* memory, std::size_t bytes, std::uint64_t offset) override {
        if (cached_fd >= 0 && fd != cached_fd) System::pread(cached_fd, memory, bytes, offset);
        return System::pread(fd, memory, bytes, offset);
    }
    int number = 0;
    int cached_fd = -1;
};

// Takes all descriptors that the process may have, for as long as it lives.
class NoDescriptors {
  public:
    NoDescriptors() {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        rlimit few = before_;
        few.rlim_cur = 256;
        ::setrlimit(RLIMIT_NOFILE, &few);
        const auto take = [] { return ::open("/dev/null", O_RDONLY); };
        for (int fd = take(); fd >= 0; fd = take()) held_.emplace_back(fd);
    }
    ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

  private:
    rlimit before_{};
    std::vector<os::UniqueFd> held_;
};

std::size_t descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

class Descriptors : public testing::Test {
  protected:
    static TransferOptions by(PathKind path) {
        TransferOptions options;
        options.path = path;
        return options;
    }
    OneDescriptor system_;
    TempDirectory directory_;
    const Context context_ = context::make_context({.device = "host"}, {.system = &system_});
};

TEST_F(Descriptors, a_file_for_which_there_is_one_only_is_not_opened_and_leaves_none_behind) {
    write_file(directory_.file("data"), stamped(1 * kMiB));
    const std::size_t before = descriptors();
    for (const int number : {EMFILE, ENFILE}) {
        for (const OpenMode mode : {OpenMode::read, OpenMode::read_write, OpenMode::create}) {
            system_.number = number;
            try {
                context_.open(directory_.file(mode == OpenMode::create ? "new" : "data"), {.mode = mode});
                FAIL() << "a file that goes through the page cache for ever";
            } catch (const Error& error) {
                EXPECT_EQ(error.info().system_code, number);
                EXPECT_NE(error.info().advice.find(number == EMFILE ? "ulimit -n" : "fs.file-max"), std::string::npos);
            }
        }
    }
    EXPECT_EQ(descriptors(), before);
    EXPECT_EQ(directory_.entries(), 1u);
    system_.number = EINVAL;  // a file system that has no O_DIRECT at all
    EXPECT_FALSE(context_.open(directory_.file("data")).facts().direct);
}

TEST_F(Descriptors, a_transfer_without_a_ring_goes_on_by_threads_on_record_or_fails_when_strict) {
    write_file(directory_.file("data"), stamped(8 * kMiB));
    const File file = context_.open(directory_.file("data"), {.mode = OpenMode::read_write});
    if (!file.facts().direct) GTEST_SKIP() << "no O_DIRECT here: " << file.facts().direct_cause;
    const Buffer buffer = context_.allocate(8 * kMiB);
    if (!file.read(buffer.view().slice(0, 4096), 0, by(PathKind::buffered)).ok()) FAIL();
    for (const PathKind path : {PathKind::uring, PathKind::uring_buffered}) {
        const PathKind instead = path == PathKind::uring ? PathKind::direct : PathKind::buffered;
        std::optional<NoDescriptors> none;
        none.emplace();
        const Outcome outcome = file.read(buffer.view(), 0, by(path));
        TransferOptions strict = by(path);
        strict.strict = true;
        const Outcome refused = file.read(buffer.view(), 0, strict);
        none.reset();
        ASSERT_TRUE(outcome.ok()) << outcome.error.message();
        EXPECT_EQ(outcome.evidence.path_name(), to_string(instead));
        ASSERT_EQ(outcome.evidence.fallbacks.size(), 1u);
        EXPECT_EQ(outcome.evidence.fallbacks[0].wanted, path);
        EXPECT_EQ(outcome.evidence.fallbacks[0].took, instead);
        EXPECT_EQ(outcome.evidence.fallbacks[0].bytes, 8 * kMiB);
        EXPECT_NE(outcome.evidence.fallbacks[0].cause.find("Too many open files"), std::string::npos);
        EXPECT_TRUE(fetch(context_, buffer.data(), 8 * kMiB) == stamped(8 * kMiB));
        EXPECT_EQ(refused.error.system_code, EMFILE);
        EXPECT_NE(refused.error.advice.find("ulimit -n"), std::string::npos) << refused.error.message();
        EXPECT_EQ(file.read(buffer.view(), 0, by(path)).evidence.path_name(), to_string(path)) << "there is one again";
    }
}

TEST_F(Descriptors, threads_in_place_of_a_ring_are_watched_for_the_page_cache_like_it) {
    write_file(directory_.file("data"), stamped(8 * kMiB));
    const File file = context_.open(directory_.file("data"));
    if (!file.facts().direct) GTEST_SKIP() << "no O_DIRECT here: " << file.facts().direct_cause;
    if (file.facts().alignment_source != "statx") GTEST_SKIP() << "the kernel promises nothing of files here";
    const os::UniqueFd cached(::open(directory_.file("data").c_str(), O_RDONLY | O_CLOEXEC));
    const Buffer buffer = context_.allocate(8 * kMiB);
    for (const bool caches : {false, true}) {
        file.drop_cache(0, 0);
        system_.cached_fd = caches ? cached.get() : -1;
        const NoDescriptors none;
        const Outcome outcome = file.read(buffer.view(), 0, by(PathKind::uring));
        ASSERT_TRUE(outcome.ok()) << outcome.error.message();
        EXPECT_EQ(outcome.evidence.path_name(), caches ? "buffered" : "direct");
        ASSERT_EQ(outcome.evidence.paths.size(), 1u);
        EXPECT_EQ(outcome.evidence.paths[0].past_page_cache, !caches);
    }
}

}  // namespace
}  // namespace penstock
