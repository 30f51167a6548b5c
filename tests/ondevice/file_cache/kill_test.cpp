// What a page cache leaves in its files if its process is killed in the middle of writing back: all that was flushed.
// On the device that PENSTOCK_TEST_DEVICE names, else on the emulated one.
//
// The test starts this program anew and kills that process. A fork would not do, since a child cannot use a GPU that
// its parent used. If its environment says so, the program stores pages before any test begins, until it is killed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <sstream>

#include "context/test_files.hpp"
#include "ondevice/file_cache/crash_rig.hpp"
#include "ondevice/service/striped_rig.hpp"

namespace penstock::ondevice {
namespace {

constexpr const char* kVariable = "PENSTOCK_TEST_STORES_UNTIL_KILLED";
constexpr int kTells = 9;  // the descriptor on which the process reports what it did

struct Plan {
    std::size_t files = 1;  // the array's
    bool flushes = true;
    unsigned kill_after_us = 0;  // after it reported its first flush
};

StripedNames names_of(const std::string& stem, std::size_t files) {
    return striped_names(stem, files, 2 * kCrashPage);
}

// Stores all pages, flushes, reports that, and goes on with newer versions. With `flushes` false it only reports.
[[noreturn]] void store_until_killed(const StripedNames& names, bool flushes) {
    ::alarm(100);  // ends the process if the test does not
    const OpenedSet opened(names);
    CrashCache cache(opened.set);
    for (u64 version = 1;; ++version) {
        for (u64 page = 0; page < kCrashPages; ++page)
            if (cache.store(page, version) != Status::ok) ::_exit(1);
        if (flushes && cache.flush() != Status::ok) ::_exit(1);
        const auto told = static_cast<unsigned char>(std::min<u64>(version, 255));
        if (::write(kTells, &told, 1) != 1) ::_exit(1);
        while (!flushes) ::pause();
    }
}

class StoresUntilKilled : public testing::Environment {
  public:
    void SetUp() override {
        const char* const told = std::getenv(kVariable);
        if (told == nullptr) return;
        std::istringstream words(told);
        std::size_t files = 0;
        bool flushes = true;
        std::string stem;
        words >> files >> flushes >> stem;
        store_until_killed(names_of(stem, files), flushes);
    }
};
const testing::Environment* const kEnvironment = testing::AddGlobalTestEnvironment(new StoresUntilKilled);

// Starts this program in a process of its own, quiet but for errors, with `tell` as kTells.
pid_t started(const std::string& variable, int tell) {
    std::string set = std::string(kVariable) + "=" + variable, name = "/proc/self/exe";
    std::vector<char*> environment;
    for (char** one = environ; *one != nullptr; ++one) environment.push_back(*one);
    environment.push_back(set.data());
    environment.push_back(nullptr);
    char* const arguments[] = {name.data(), nullptr};
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, tell, kTells);
    pid_t child = -1;
    if (::posix_spawn(&child, name.c_str(), &actions, nullptr, arguments, environment.data()) != 0) child = -1;
    ::posix_spawn_file_actions_destroy(&actions);
    return child;
}

class FileCacheKill : public testing::Test {
  protected:
    // Finds the pages that the process reported as flushed and that are not in the files after the kill.
    void lost_after_a_kill(const Plan& plan, std::vector<u64>& lost) {
        const std::string stem = directory_.file(std::to_string(plan.kill_after_us) + ".");
        const StripedNames names = names_of(stem, plan.files);
        names.write(crash_file());
        int ends[2];
        ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        const pid_t child =
            started(std::to_string(plan.files) + (plan.flushes ? " 1 " : " 0 ") + stem, ends[1]);
        ::close(ends[1]);
        ASSERT_GT(child, 0);
        unsigned char flushed = 0;
        const bool told = ::read(ends[0], &flushed, 1) == 1;
        ::usleep(plan.kill_after_us);
        ::kill(child, SIGKILL);
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_TRUE(told) << "it flushed once";
        EXPECT_TRUE(WIFSIGNALED(status)) << "exit " << status;
        for (unsigned char next = 0; ::read(ends[0], &next, 1) == 1;) flushed = next;
        ::close(ends[0]);
        const std::vector<u8> file = names.read();
        ASSERT_EQ(file.size(), kCrashPages * kCrashPage);
        for (u64 page = 0; page < kCrashPages; ++page) {
            const u64 version = lowest_version(file, page);
            if (version == ~0ull || version < flushed) lost.push_back(page);
        }
    }

    const test::TempDirectory directory_;
};

TEST_F(FileCacheKill, what_was_flushed_before_is_in_the_file) {
    std::vector<u64> lost;
    for (unsigned round = 0; round < 8; ++round) lost_after_a_kill({1, true, 500 + round * 1500}, lost);
    EXPECT_EQ(lost, std::vector<u64>{});
}

TEST_F(FileCacheKill, what_was_flushed_before_is_in_all_files) {
    std::vector<u64> lost;
    for (unsigned round = 0; round < 4; ++round) lost_after_a_kill({3, true, 500 + round * 1500}, lost);
    EXPECT_EQ(lost, std::vector<u64>{});
}

// Pages that had to make room are in the file; pages that stayed in the cache to the end are not.
TEST_F(FileCacheKill, control_what_was_not_flushed_is_missed) {
    std::vector<u64> lost;
    lost_after_a_kill({1, false, 0}, lost);
    EXPECT_GE(lost.size(), 1u);
    EXPECT_LE(lost.size(), kCrashFrames);
}

}  // namespace
}  // namespace penstock::ondevice
