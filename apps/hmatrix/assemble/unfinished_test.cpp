// Assembly that does not finish: a full disk, a failing disk, a killed process. Nothing of the new file remains, and an
// older file of that name stays complete.
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

#include "context/test_files.hpp"
#include "hmatrix/assemble/small_problem_rig.hpp"
#include "hmatrix/file/reader.hpp"
#include "os/system.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

AssembleOptions in_batches() {
    AssembleOptions options;
    options.batches = 6;
    return options;
}

// A disk that is full, or fails, from an offset on, or that fails only when data is made durable.
class BadDisk final : public os::System {
  public:
    ssize_t pwrite(int fd, const void* memory, std::size_t bytes, std::uint64_t offset) override {
        if (offset + bytes > bad_from) {
            errno = number;
            return -1;
        }
        return System::pwrite(fd, memory, bytes, offset);
    }
    int fdatasync(int fd) override { return bad_sync ? (errno = EIO, -1) : System::fdatasync(fd); }
    int fsync(int fd) override { return bad_sync ? (errno = EIO, -1) : System::fsync(fd); }
    std::uint64_t bad_from = UINT64_MAX;
    int number = ENOSPC;
    bool bad_sync = false;
};

class Unfinished : public testing::Test {
  protected:
    void build(os::System* system, const AssembleOptions& options = in_batches()) const {
        const Context context = host_context({}, {.system = system});
        Workers workers(2);
        assemble(context, workers, given_.problem(), name_, options);
    }
    // Runs `work` in a child process. The child exits with 0 if `work` returns.
    int in_child(const std::function<void()>& work) const {
        const pid_t child = ::fork();
        if (child == 0) {
            work();
            ::_exit(0);
        }
        int status = 0;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        return status;
    }
    test::TempDirectory directory_;
    std::string name_ = directory_.file("a.hmat");
    SmallProblem given_{500};
};

TEST_F(Unfinished, a_disk_that_fills_or_fails_anywhere_leaves_what_was_there) {
    build(nullptr);
    const auto whole = test::read_file(name_);
    for (const bool first : {true, false}) {  // whether the file is the first of its name
        if (first) std::filesystem::remove(name_);
        for (const auto& [number, code] : {std::pair{ENOSPC, ErrorCode::no_space}, {EIO, ErrorCode::io_error}}) {
            for (const std::uint64_t at : {whole.size() * 0 + 1, whole.size() / 3, whole.size() - 1}) {
                BadDisk disk;
                disk.bad_from = at;
                disk.number = number;
                try {
                    build(&disk);
                    FAIL() << "written to a bad disk, from " << at;
                } catch (const Error& error) {
                    EXPECT_EQ(error.code(), code) << error.what();
                }
                ASSERT_EQ(directory_.entries(), first ? 0u : 1u);
                ASSERT_TRUE(first || test::read_file(name_) == whole);
            }
        }
        if (first) build(nullptr);
    }
    BadDisk disk;
    disk.bad_sync = true;
    EXPECT_THROW(build(&disk), Error) << "a file that may not last was announced";
}

TEST_F(Unfinished, a_file_larger_than_the_system_allows_is_an_error) {
    const int status = in_child([&] {
        rlimit limit{};
        limit.rlim_cur = limit.rlim_max = 200000;
        ::setrlimit(RLIMIT_FSIZE, &limit);
        ::signal(SIGXFSZ, SIG_IGN);
        try {
            build(nullptr);
        } catch (const Error& error) {
            ::_exit(error.info().system_code == EFBIG ? 7 : 8);
        }
    });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
    EXPECT_EQ(directory_.entries(), 0u);
}

TEST_F(Unfinished, a_killed_assembly_leaves_nothing_under_the_name) {
    for (int batch = 1; batch <= 6; ++batch) {
        const int status = in_child([&] {
            AssembleOptions options = in_batches();
            int done = 0;
            options.progress = [&](const AssembleProgress&) {
                if (++done == batch) ::kill(::getpid(), SIGKILL);
                return true;
            };
            build(nullptr, options);
        });
        ASSERT_TRUE(WIFSIGNALED(status)) << "it was not killed";
        EXPECT_FALSE(std::filesystem::exists(name_)) << batch;
    }
}

// Kills its process at the n-th call that writes or names a file. The last of these calls write the tables and the
// header.
class KillingSystem final : public os::System {
  public:
    explicit KillingSystem(int calls) : left_(calls) {}
    ssize_t pwrite(int fd, const void* memory, std::size_t bytes, std::uint64_t offset) override {
        return step(), System::pwrite(fd, memory, bytes, offset);
    }
    int fsync(int fd) override { return step(), System::fsync(fd); }
    int fdatasync(int fd) override { return step(), System::fdatasync(fd); }
    int rename(int folder, const char* from, const char* to, unsigned flags) override {
        return step(), System::rename(folder, from, to, flags);
    }
    int link_fd(int fd, int folder, const char* name) override { return step(), System::link_fd(fd, folder, name); }

  private:
    void step() {
        if (left_-- == 0) ::kill(::getpid(), SIGKILL);
    }
    std::atomic<int> left_;
};

TEST_F(Unfinished, killed_at_any_system_call_there_is_the_whole_file_or_none) {
    int whole = 0, none = 0;
    bool ended = false;
    for (int call = 0; !ended && call < 60; ++call) {
        const int status = in_child([&] {
            KillingSystem system(call);
            build(&system);
        });
        ended = WIFEXITED(status);
        if (!std::filesystem::exists(name_)) {
            ++none;
            continue;
        }
        Workers workers(1);
        const MatrixFile file = MatrixFile::open(host_context(), workers, name_);  // throws if the file is not complete
        EXPECT_EQ(file.head().unknowns, given_.unknowns());
        ++whole;
        std::filesystem::remove(name_);
    }
    EXPECT_TRUE(ended);
    EXPECT_GT(none, 8);
    EXPECT_GE(whole, 1);
}

}  // namespace
}  // namespace penstock::hmatrix
