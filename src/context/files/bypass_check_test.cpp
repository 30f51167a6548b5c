// What evidence says of direct transfers where the file system takes O_DIRECT and moves bytes by the page cache, and
// where it does not. python/tests/evidence/test_evidence_fs.py has the file systems that do so.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "context/files/bypass_check.hpp"
#include "context/seams.hpp"
#include "context/test_files.hpp"
#include "os/fd.hpp"
#include "os/file/direct.hpp"
#include "os/file/extents.hpp"
#include "os/system.hpp"
#include "penstock/context.hpp"

namespace penstock {
namespace {

using test::stamped;
using test::TempDirectory;
using test::write_file;

constexpr std::uint64_t kCheckedBytes = 4 * kMiB;

// Direct reads bring their bytes into the page cache, as those of compressed files do.
class CachingSystem : public os::System {
  public:
    ssize_t pread(int fd, void* memory, std::size_t bytes, std::uint64_t offset) override {
        if (caches && (::fcntl(fd, F_GETFL) & O_DIRECT) != 0) {
            const std::string self = "/proc/self/fd/" + std::to_string(fd);
            const os::UniqueFd cached(::open(self.c_str(), O_RDONLY | O_CLOEXEC));
            System::pread(cached.get(), memory, bytes, offset);
        }
        return System::pread(fd, memory, bytes, offset);
    }
    std::atomic<bool> caches{false};
};

class Bypassed : public testing::Test {
  protected:
    void SetUp() override {
        write_file(directory_.file("data"), stamped(kCheckedBytes));
        context_.emplace(context::make_context({.device = "host"}, {.system = &system_}));
        file_.emplace(context_->open(directory_.file("data")));
        buffer_ = context_->allocate(kCheckedBytes, MemoryKind::system);
        if (!file_->facts().direct) GTEST_SKIP() << "no O_DIRECT here: " << file_->facts().direct_cause;
        if (file_->facts().alignment_source != "statx") GTEST_SKIP() << "the kernel promises nothing of files here";
        file_->drop_cache(0, 0);
    }
    Outcome read(bool strict, PathKind path = PathKind::direct) {
        TransferOptions options;
        options.path = path;
        options.strict = strict;
        return file_->read(buffer_.view(), 0, options);
    }
    CachingSystem system_;
    TempDirectory directory_;
    std::optional<Context> context_;
    std::optional<File> file_;
    Buffer buffer_;
};

TEST_F(Bypassed, reads_that_leave_the_page_cache_empty_are_direct) {
    const Outcome outcome = read(true);
    ASSERT_TRUE(outcome.ok()) << outcome.error.message();
    EXPECT_EQ(outcome.evidence.path_name(), "direct");
    EXPECT_EQ(outcome.evidence.paths.at(0).past_page_cache, true);
    EXPECT_TRUE(outcome.evidence.fallbacks.empty());
}

TEST_F(Bypassed, reads_after_which_the_bytes_are_in_the_page_cache_are_a_fallback) {
    system_.caches = true;
    const Outcome outcome = read(false);
    ASSERT_TRUE(outcome.ok()) << outcome.error.message();
    EXPECT_EQ(outcome.evidence.path_name(), "buffered");
    ASSERT_EQ(outcome.evidence.paths.size(), 1u);
    EXPECT_EQ(outcome.evidence.paths[0].bytes, kCheckedBytes);
    EXPECT_EQ(outcome.evidence.paths[0].past_page_cache, false);
    ASSERT_EQ(outcome.evidence.fallbacks.size(), 1u);
    EXPECT_EQ(outcome.evidence.fallbacks[0].wanted, PathKind::direct);
    EXPECT_EQ(outcome.evidence.fallbacks[0].took, PathKind::buffered);
    EXPECT_EQ(outcome.evidence.fallbacks[0].bytes, kCheckedBytes);
}

TEST_F(Bypassed, reads_that_fell_back_are_an_error_in_strict_transfers) {
    system_.caches = true;
    const Outcome outcome = read(true);
    EXPECT_EQ(outcome.error.code, ErrorCode::fallback_refused) << outcome.error.message();
    EXPECT_EQ(outcome.error.file, directory_.file("data"));
    EXPECT_EQ(outcome.error.length_bytes, kCheckedBytes);
    EXPECT_FALSE(outcome.error.advice.empty());
}

TEST_F(Bypassed, once_a_file_fell_back_the_policy_takes_the_page_cache) {
    system_.caches = true;
    ASSERT_TRUE(read(false).ok());
    file_->drop_cache(0, 0);
    const Outcome outcome = read(false, PathKind::automatic);
    ASSERT_TRUE(outcome.ok()) << outcome.error.message();
    EXPECT_EQ(outcome.evidence.path_name(), "buffered");
    EXPECT_NE(outcome.evidence.why.find("earlier reads"), std::string::npos) << outcome.evidence.why;
}

TEST_F(Bypassed, what_was_cached_before_is_no_fallback) {
    ASSERT_TRUE(read(false, PathKind::buffered).ok());
    const Outcome outcome = read(true);
    ASSERT_TRUE(outcome.ok()) << outcome.error.message();
    EXPECT_EQ(outcome.evidence.path_name(), "direct");
}

TEST_F(Bypassed, is_looked_at_where_a_step_bypasses_the_page_cache) {
    Plan plan;
    plan.steps.emplace_back().shape.path = PathKind::buffered;
    EXPECT_EQ(context::BypassCheck::of(plan, {}, {}), nullptr);
    plan.steps.emplace_back().shape.path = PathKind::aio;
    EXPECT_NE(context::BypassCheck::of(plan, {}, {}), nullptr);
}

TEST_F(Bypassed, paths_through_the_page_cache_say_so) {
    for (const PathKind path : {PathKind::buffered, PathKind::mmap}) {
        const Outcome outcome = read(true, path);
        ASSERT_TRUE(outcome.ok()) << outcome.error.message();
        EXPECT_EQ(outcome.evidence.paths.at(0).past_page_cache, false);
        EXPECT_NE(outcome.evidence.to_json().find("\"past_page_cache\":false"), std::string::npos);
    }
}

TEST_F(Bypassed, plain_extents_hold_no_encoded_bytes) {
    const os::UniqueFd fd(::open(directory_.file("data").c_str(), O_RDONLY | O_CLOEXEC));
    if (!os::tells_extents(fd.get())) GTEST_SKIP() << "the file system does not tell of extents";
    EXPECT_EQ(os::encoded_bytes(fd.get(), 0, kCheckedBytes), 0u);
    EXPECT_EQ(os::encoded_bytes(-1, 0, kCheckedBytes), std::nullopt);
}

}  // namespace
}  // namespace penstock
