// Which object outlives which: callbacks that own the context, forked children, handles without a state, closing twice.
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>

#include "context/seams.hpp"
#include "context/test_files.hpp"
#include "os/system.hpp"
#include "penstock/context.hpp"

namespace penstock {
namespace {

using test::read_file;
using test::stamped;
using test::TempDirectory;
using test::write_file;

// No O_TMPFILE, as on NFS; names that are taken; slow naming; a disk that is full now and then.
class OddSystem : public os::System {
  public:
    int openat(int folder, const char* name, int flags, unsigned mode) override {
        if ((flags & O_TMPFILE) == O_TMPFILE && named) return fail(EOPNOTSUPP);
        if ((flags & O_EXCL) != 0 && taken-- > 0) return fail(EEXIST);
        return System::openat(folder, name, flags, mode);
    }
    int link_fd(int fd, int folder, const char* name) override {
        std::this_thread::sleep_for(std::chrono::milliseconds(naming_ms));
        return System::link_fd(fd, folder, name);
    }
    // Another process makes the file larger just before the library does.
    int fallocate(int fd, std::uint64_t offset, std::uint64_t bytes) override {
        if (grows_to != 0) static_cast<void>(System::ftruncate(fd, grows_to));
        return System::fallocate(fd, offset, bytes);
    }
    int ftruncate(int fd, std::uint64_t bytes) override {
        if (grows_to != 0) static_cast<void>(System::ftruncate(fd, grows_to));
        return System::ftruncate(fd, bytes);
    }
    int fdatasync(int fd) override { return interruptions-- > 0 ? fail(EINTR) : System::fdatasync(fd); }
    int fsync(int fd) override { return interruptions-- > 0 ? fail(EINTR) : System::fsync(fd); }
    ssize_t pwrite(int fd, const void* memory, std::size_t bytes, std::uint64_t offset) override {
        return full ? fail(ENOSPC) : System::pwrite(fd, memory, bytes, offset);
    }
    bool named = false;
    int taken = 0;
    int naming_ms = 0;
    std::atomic<int> interruptions{0};
    std::uint64_t grows_to = 0;
    std::atomic<bool> full{false};

  private:
    static int fail(int number) {
        errno = number;
        return -1;
    }
};

class Lifetime : public testing::Test {
  protected:
    Context make(double bandwidth_bytes_per_s = 0) {
        ContextOptions options;
        options.device = "host";
        options.host.bandwidth_bytes_per_s = bandwidth_bytes_per_s;
        return context::make_context(options, {.system = &system_});
    }
    // Runs `action` in a forked child; 0 when it returned true, else its exit status or signal.
    static int in_child(const std::function<bool()>& action, unsigned limit_s = 20) {
        const pid_t child = ::fork();
        if (child == 0) {
            ::alarm(limit_s);
            bool good = false;
            try {
                good = action();
            } catch (...) {
            }
            ::_exit(good ? 0 : 1);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    }
    OddSystem system_;
    TempDirectory directory_;
};

bool refused(const std::function<void()>& action, ErrorCode code) {
    try {
        action();
    } catch (const Error& error) {
        return error.code() == code;
    }
    return false;
}

// A context that asks the kernel for native AIO waits 30 to 40 ms each time. On a busy machine the least is what it
// takes.
TEST_F(Lifetime, a_context_is_made_without_waiting_for_the_kernel) {
    auto least = Clock::duration::max();
    for (int i = 0; i < 30; ++i) {
        const auto began = Clock::now();
        const Context context({.device = "host"});
        least = std::min(least, Clock::now() - began);
    }
    EXPECT_LT(least, std::chrono::milliseconds(10));
}

TEST_F(Lifetime, a_callback_may_hold_the_last_handle_of_its_own_context) {
    write_file(directory_.file("data"), stamped(2 * kMiB));
    std::weak_ptr<int> alive;
    {
        ContextOptions options;  // its end has no known time, so nothing of the test's may be lent to it
        options.device = "host";
        options.host.bandwidth_bytes_per_s = 50e6;
        auto context = std::make_shared<Context>(options);
        const auto token = std::make_shared<int>(1);
        alive = token;
        const File file = context->open(directory_.file("data"));
        const Buffer buffer = context->allocate(2 * kMiB);
        TransferOptions each;
        each.progress = [context, token](std::uint64_t, std::uint64_t) {};
        file.start_read(buffer.view(), 0, each);
    }  // now only the callback holds the context; its end comes on one of the context's own threads
    const auto start = Clock::now();
    while (!alive.expired() && Clock::now() - start < std::chrono::seconds(10)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_TRUE(alive.expired());
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

TEST_F(Lifetime, a_forked_child_is_refused_and_harms_nothing) {
    system_.named = true;
    write_file(directory_.file("data"), stamped(2 * kMiB));
    auto context = std::make_unique<Context>(make());
    auto file = std::make_unique<File>(context->open(directory_.file("data")));
    auto made = std::make_unique<File>(context->open(directory_.file("new"), {.mode = OpenMode::create}));
    auto buffer = std::make_unique<Buffer>(context->allocate(2 * kMiB));
    ASSERT_TRUE(made->write(buffer->view()).ok());
    ASSERT_TRUE(file->read(buffer->view()).ok());  // the context has threads now
    EXPECT_EQ(in_child([&] {
                  bool good = refused([&] { file->read(buffer->view()); }, ErrorCode::unsupported);
                  good &= refused([&] { context->allocate(10); }, ErrorCode::unsupported);
                  good &= refused([&] { file->sync(); }, ErrorCode::unsupported);
                  good &= refused([&] { made->close(); }, ErrorCode::unsupported);
                  file.reset(), made.reset(), buffer.reset(), context.reset();  // must not wait for absent threads
                  return good;
              }),
              0);
    EXPECT_TRUE(file->read(buffer->view()).ok());
    made->close();  // its temporary is still there
    EXPECT_EQ(read_file(directory_.file("new")).size(), 2 * kMiB);
}

TEST_F(Lifetime, a_machine_that_gives_no_threads_is_an_error_and_not_the_end) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become a user with a limit";
    write_file(directory_.file("data"), stamped(2 * kMiB));
    EXPECT_EQ(in_child([&] {
                  const Context context = make();
                  File file = context.open(directory_.file("data"));
                  const Buffer buffer = context.allocate(2 * kMiB);
                  const rlimit none{0, 0};
                  if (::setrlimit(RLIMIT_NPROC, &none) != 0 || ::setuid(65534) != 0) return false;
                  try {
                      std::thread([] {}).join();
                      return true;  // no such limit here: nothing to see
                  } catch (const std::system_error&) {
                  }
                  const Outcome outcome = file.read(buffer.view());
                  file.close();
                  return outcome.error.code == ErrorCode::out_of_memory;
              }),
              0);
}

TEST_F(Lifetime, a_transfer_that_was_never_started_is_refused_in_words) {
    const Transfer none;
    EXPECT_TRUE(refused([&] { none.result(); }, ErrorCode::invalid_argument));
    EXPECT_TRUE(refused([&] { none.wait(); }, ErrorCode::invalid_argument));
    EXPECT_TRUE(refused([&] { none.done(); }, ErrorCode::invalid_argument));
    EXPECT_TRUE(refused([&] { none.cancel(); }, ErrorCode::invalid_argument));
    EXPECT_EQ(none.bytes_done(), 0u);
    EXPECT_EQ(none.bytes_total(), 0u);
    EXPECT_TRUE(none.plan().steps.empty());
}

TEST_F(Lifetime, two_contexts_make_files_of_one_name_side_by_side) {
    system_.named = true;
    const Context one = make();
    const Context other = make();
    File first = one.open(directory_.file("new"), {.mode = OpenMode::create});
    File second = other.open(directory_.file("new"), {.mode = OpenMode::create});
    first.close();
    second.close();
    EXPECT_EQ(directory_.entries(), 1u);
}

TEST_F(Lifetime, a_temporary_left_by_a_killed_process_is_in_nobodys_way) {
    system_.named = true;
    system_.taken = 3;
    const Context context = make();
    File file = context.open(directory_.file("new"), {.mode = OpenMode::create});
    file.close();
    EXPECT_EQ(directory_.entries(), 1u);
}

TEST_F(Lifetime, a_long_name_leaves_room_for_its_temporary) {
    const std::string name = directory_.file(std::string(250, 'n'));
    for (const bool named : {false, true, true}) {
        system_.named = named;
        const Context context = make();
        File file = context.open(name, {.mode = OpenMode::create});  // the second and third time it replaces
        file.close();
        EXPECT_EQ(directory_.entries(), 1u);
    }
}

TEST_F(Lifetime, two_threads_close_one_new_file) {
    system_.naming_ms = 50;
    const Context context = make(20e6);
    const Buffer buffer = context.allocate(1 * kMiB);
    File file = context.open(directory_.file("new"), {.mode = OpenMode::create, .replace = false});
    const Transfer transfer = file.start_write(buffer.view());
    const auto close = [file, this]() mutable {
        file.close();
        return std::filesystem::exists(directory_.file("new"));
    };
    auto one = std::async(std::launch::async, close);
    auto other = std::async(std::launch::async, close);
    EXPECT_TRUE(one.get());
    EXPECT_TRUE(other.get());
    EXPECT_TRUE(transfer.result().ok());
}

TEST_F(Lifetime, an_interrupted_sync_is_repeated) {
    const Context context = make();
    const Buffer buffer = context.allocate(64 * kKiB);
    File file = context.open(directory_.file("new"), {.mode = OpenMode::create, .durable = true});
    system_.interruptions = 2;
    TransferOptions durable;
    durable.durable = true;
    EXPECT_TRUE(file.write(buffer.view(), 0, durable).ok());
    system_.interruptions = 2;
    EXPECT_NO_THROW(file.close());
    EXPECT_LE(system_.interruptions.load(), 0);  // they came
}

TEST_F(Lifetime, extending_a_file_never_cuts_off_what_somebody_else_appended) {
    const Context context = make();
    const Buffer buffer = context.allocate(1 * kMiB);
    write_file(directory_.file("data"), stamped(4096));
    const File file = context.open(directory_.file("data"), {.mode = OpenMode::read_write});
    system_.grows_to = 3 * kMiB;
    TransferOptions mapped;
    mapped.path = PathKind::mmap;
    EXPECT_TRUE(file.write(buffer.view(), 4096, mapped).ok());
    EXPECT_EQ(file.size_bytes(), 3 * kMiB);
}

TEST_F(Lifetime, a_new_file_with_a_hole_where_a_write_failed_gets_no_name) {
    const Context context = make();
    const Buffer buffer = context.allocate(1 * kMiB);
    const std::string name = directory_.file("new");
    TransferOptions buffered;
    buffered.path = PathKind::buffered;
    for (const bool repaired : {false, true}) {
        File file = context.open(name, {.mode = OpenMode::create});
        ASSERT_TRUE(file.write(buffer.view(), 0, buffered).ok());
        system_.full = true;
        EXPECT_EQ(file.write(buffer.view(), 1 * kMiB, buffered).error.code, ErrorCode::no_space);  // told, and ignored
        system_.full = false;
        if (repaired) {
            ASSERT_TRUE(file.write(buffer.view().slice(0, kMiB / 2), 1 * kMiB, buffered).ok());
            ASSERT_TRUE(file.write(buffer.view().slice(0, kMiB / 2), kMiB + kMiB / 2, buffered).ok());
            EXPECT_NO_THROW(file.close());
        } else {
            EXPECT_TRUE(refused([&] { file.close(); }, ErrorCode::no_space));
        }
        EXPECT_EQ(std::filesystem::exists(name), repaired);
    }
    EXPECT_EQ(directory_.entries(), 1u);
}

}  // namespace
}  // namespace penstock
