// Threads that read one file at the same time have a descriptor each, and a thread alone pays nothing.
#include "context/files/read_descriptors.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <latch>
#include <thread>

#include "context/seams.hpp"
#include "context/test_files.hpp"

namespace penstock::context {
namespace {

using test::stamped;
using test::TempDirectory;
using test::write_file;

using Lent = ReadDescriptors::Lent;

// Counts what is opened anew by way of a descriptor.
class CountedReopens : public os::System {
  public:
    int open(const char* name, int flags, unsigned mode) override {
        if (std::string_view(name).starts_with("/proc/self/fd/")) {
            ++opened;
            if (number != 0) {
                errno = number;
                return -1;
            }
        }
        return System::open(name, flags, mode);
    }
    std::atomic<int> opened{0};
    int number = 0;  // of the error that comes instead
};

class SoftLimit {
  public:
    explicit SoftLimit(rlim_t limit) {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        const rlimit now{limit, before_.rlim_max};
        ::setrlimit(RLIMIT_NOFILE, &now);
    }
    ~SoftLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

  private:
    rlimit before_{};
};

ino_t inode(int fd) {
    struct stat status {};
    EXPECT_EQ(::fstat(fd, &status), 0);
    return status.st_ino;
}

class ReadersOfOneFile : public testing::Test {
  protected:
    void SetUp() override {
        write_file(directory_.file("data"), stamped(1 * kMiB));
        file_ = os::UniqueFd(::open(directory_.file("data").c_str(), O_RDONLY | O_CLOEXEC));
    }
    // What a second reader gets beside a first one.
    int second(ReadDescriptors& readers) const {
        const Lent first(readers), other(readers);
        EXPECT_EQ(first.fd(), file_.get());
        return other.fd();
    }
    const SoftLimit usual_{1024};
    TempDirectory directory_;
    CountedReopens system_;
    os::UniqueFd file_;
};

TEST_F(ReadersOfOneFile, one_alone_opens_nothing) {
    ReadDescriptors readers(system_, file_.get(), true);
    for (int turn = 0; turn < 3; ++turn) EXPECT_EQ(Lent(readers).fd(), file_.get());
    EXPECT_EQ(system_.opened, 0);
}

TEST_F(ReadersOfOneFile, others_get_their_own_which_is_kept) {
    ReadDescriptors readers(system_, file_.get(), true);
    const int own = second(readers);
    EXPECT_NE(own, file_.get());
    EXPECT_EQ(inode(own), inode(file_.get()));
    EXPECT_EQ(second(readers), own) << "it was given back";
    {
        const Lent one(readers), two(readers), three(readers);
        EXPECT_NE(two.fd(), three.fd());
    }
    EXPECT_EQ(system_.opened, 2);
    readers.close();
    EXPECT_EQ(::fcntl(own, F_GETFD), -1);
}

TEST_F(ReadersOfOneFile, they_are_of_the_file_that_was_opened) {
    ReadDescriptors readers(system_, file_.get(), true);
    std::filesystem::rename(directory_.file("data"), directory_.file("old"));
    write_file(directory_.file("data"), stamped(4096));
    EXPECT_EQ(inode(second(readers)), inode(file_.get()));
    std::filesystem::remove(directory_.file("old"));
    const Lent first(readers), other(readers), third(readers);
    EXPECT_EQ(inode(third.fd()), inode(file_.get())) << "without a name";
    EXPECT_NE(third.fd(), file_.get());
}

TEST_F(ReadersOfOneFile, the_one_there_is_serves_all_where_no_other_can_be_had) {
    ReadDescriptors served(system_, file_.get(), false);
    EXPECT_EQ(second(served), file_.get()) << "a server may not answer";
    EXPECT_EQ(system_.opened, 0);
    ReadDescriptors readers(system_, file_.get(), true);
    for (const int number : {EMFILE, ENOENT, EACCES}) {
        system_.number = number;
        EXPECT_EQ(second(readers), file_.get());
    }
}

TEST_F(ReadersOfOneFile, most_descriptors_are_left_to_the_process) {
    ReadDescriptors readers(system_, file_.get(), true);
    {
        const SoftLimit few(128);
        EXPECT_EQ(second(readers), file_.get());
    }
    std::vector<os::UniqueFd> held;
    while (held.empty() || held.back().get() < 255) held.emplace_back(::dup(file_.get()));
    EXPECT_EQ(second(readers), file_.get()) << "a quarter of 1024 is in use";
    EXPECT_EQ(system_.opened, 0);
    held.resize(held.size() / 2);
    EXPECT_NE(second(readers), file_.get());
}

// Whether another process sees a lock of this one on the file.
bool is_locked(const std::string& name) {
    const pid_t child = ::fork();
    if (child == 0) {
        struct flock asked {};
        asked.l_type = F_WRLCK;
        asked.l_whence = SEEK_SET;
        const int fd = ::open(name.c_str(), O_RDWR);
        ::_exit(fd >= 0 && ::fcntl(fd, F_GETLK, &asked) == 0 && asked.l_type != F_UNLCK ? 1 : 0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

TEST_F(ReadersOfOneFile, locks_of_the_process_stay) {
    ReadDescriptors readers(system_, file_.get(), true);
    const os::UniqueFd mine(::open(directory_.file("data").c_str(), O_RDWR | O_CLOEXEC));
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    ASSERT_EQ(::fcntl(mine.get(), F_SETLK, &lock), 0);
    for (int turn = 0; turn < 3; ++turn) second(readers);
    std::vector<os::UniqueFd> held;
    while (held.empty() || held.back().get() < 255) held.emplace_back(::open("/dev/null", O_RDONLY));
    const Lent one(readers), two(readers), three(readers);
    EXPECT_TRUE(is_locked(directory_.file("data")));
}

TEST_F(ReadersOfOneFile, threads_read_what_is_there) {
    const Context context = make_context({.device = "host"}, {.system = &system_});
    const File file = context.open(directory_.file("data"));
    const auto all = stamped(1 * kMiB);
    constexpr int kThreads = 8;
    std::latch begin(kThreads);
    std::atomic<int> wrong{0};
    const int before = system_.opened;  // for O_DIRECT
    const auto read = [&](std::uint64_t from) {
        std::vector<unsigned char> memory(64 * kKiB);
        std::vector<Range> ranges;
        for (std::uint64_t at = 0; at < memory.size(); at += 4096) {
            ranges.push_back({&file, from + at, memory.data() + at, 4096});
        }
        begin.arrive_and_wait();
        for (int turn = 0; turn < 50; ++turn) {
            std::fill(memory.begin(), memory.end(), 0);
            const MemoryView view{memory.data(), memory.size(), MemoryKind::system};
            const auto done = turn % 2 == 0 ? file.try_small_reads(view, ranges) : file.try_cached_reads(view, ranges);
            const auto here = all.begin() + static_cast<std::ptrdiff_t>(from);
            if (!done || !std::equal(memory.begin(), memory.end(), here)) ++wrong;
        }
    };
    {
        std::vector<std::jthread> threads;
        for (std::uint64_t thread = 0; thread < kThreads; ++thread) threads.emplace_back(read, thread * 64 * kKiB);
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_LE(system_.opened - before, kThreads);  // who was alone and ended may come again while all others read
}

}  // namespace
}  // namespace penstock::context
