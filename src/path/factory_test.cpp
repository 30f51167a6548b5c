// The factory, and what single paths (null, posix, uring, memory_store) do beyond the common contract.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <thread>

#include "os/memory/arena.hpp"
#include "path/file_rig.hpp"

namespace penstock::path {
namespace {

using conformance::Bytes;
using conformance::OpenFile;
using conformance::pattern;

Completion reap_one(Path& path, Deadline deadline = Deadline::after(std::chrono::seconds(10))) {
    Completion done{.tag = 999'999};
    EXPECT_EQ(path.reap({&done, 1}, deadline), 1u);
    return done;
}

Completion run(Path& path, const Operation& operation) {
    EXPECT_EQ(path.submit({&operation, 1}), 1u);
    return reap_one(path);
}

TEST(MakePath, auto_is_no_path_and_the_error_names_those_that_are) {
    try {
        make_path(PathKind::automatic, {});
        FAIL() << "no error";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
        EXPECT_NE(error.info().advice.find("uring-buffered"), std::string::npos);
    }
    EXPECT_THROW(make_path(PathKind::memory, {}), Error);
}

// In builds without a library, uring_absent.cpp or aio_absent.cpp stands in for the path.
TEST(MakePath, a_build_without_a_library_says_which_to_install) {
    std::vector<std::pair<PathKind, std::string>> lacking;
#ifndef PENSTOCK_HAS_URING
    lacking.emplace_back(PathKind::uring, "liburing");
    lacking.emplace_back(PathKind::uring_buffered, "liburing");
#endif
#ifndef PENSTOCK_HAS_AIO
    lacking.emplace_back(PathKind::aio, "libaio");
#endif
    if (lacking.empty()) GTEST_SKIP() << "this build has liburing and libaio";
    for (const auto& [kind, library] : lacking) {
        try {
            make_path(kind, {});
            ADD_FAILURE() << "no error";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::unsupported);
            EXPECT_NE(error.info().advice.find(library), std::string::npos) << error.what();
        }
    }
}

TEST(NullPath, completes_everything_and_moves_nothing) {
    PathOptions options;
    options.depth = 3;
    const auto path = make_path(PathKind::null, options);
    FileHandle file;
    std::byte byte{0x55};
    const std::vector<Operation> reads(5, Operation{Direction::read, &file, 1ull << 40, &byte, 1 << 20, 4});
    EXPECT_EQ(path->submit(reads), 3u);
    EXPECT_EQ(path->submit(reads), 0u);
    std::vector<Completion> done(5);
    EXPECT_EQ(path->reap(done, Deadline::never()), 3u);
    EXPECT_EQ(done[2].bytes, 1u << 20);
    EXPECT_EQ(done[2].tag, 4u);
    EXPECT_EQ(byte, std::byte{0x55});
    EXPECT_EQ(path->reap(done, Deadline::never()), 0u);
}

// Every read fails once with each of the errnos and then returns fewer bytes than asked for.
class Rough final : public os::System {
  public:
    ssize_t pread(int fd, void* memory, std::size_t bytes, std::uint64_t offset) override {
        switch (call_++) {
            case 0:
                errno = EINTR;
                return -1;
            case 1:
                errno = EIO;
                return -1;
            default:
                return System::pread(fd, memory, bytes / 2, offset);
        }
    }

  private:
    int call_ = 0;
};

TEST(BufferedPath, reports_what_the_system_said_and_does_not_try_again) {
    Rough system;
    PathOptions options;
    options.system = &system;
    const auto path = make_path(PathKind::buffered, options);
    const OpenFile file(conformance::test_folder(), 1, pattern(4096, 1), false);
    Bytes memory(4096);
    const Operation read{Direction::read, &file.handle, 0, memory.data(), 4096, 1};
    EXPECT_EQ(run(*path, read).system_code, EINTR);
    const Completion failed = run(*path, read);
    EXPECT_EQ(failed.status, ErrorCode::io_error);
    EXPECT_EQ(failed.system_code, EIO);
    EXPECT_EQ(run(*path, read).bytes, 2048u);
}

std::unique_ptr<Path> uring_or_null(const PathOptions& options, std::string& why) {
    try {
        return make_path(PathKind::uring_buffered, options);
    } catch (const Error& error) {
        why = error.what();
        return nullptr;
    }
}

TEST(UringPath, moves_bytes_inside_outside_and_across_the_registered_arena) {
    const os::Arena arena({.bytes = 4 * kMiB});
    PathOptions options;
    options.arena = arena.memory().first(2 * kMiB);
    std::string why;
    const auto path = uring_or_null(options, why);
    if (!path) GTEST_SKIP() << why;
    const Bytes original = pattern(kMiB, 1);
    const OpenFile file(conformance::test_folder(), 1, original, true);
    for (const std::uint64_t at : {std::uint64_t{0}, kMiB, kMiB + kMiB / 2, 3 * kMiB}) {
        std::byte* memory = arena.memory().data() + at;
        EXPECT_EQ(run(*path, {Direction::read, &file.handle, 0, memory, kMiB, at}).bytes, kMiB) << at;
        EXPECT_EQ(std::memcmp(memory, original.data(), kMiB), 0) << at;
        EXPECT_EQ(run(*path, {Direction::write, &file.handle, 0, memory, kMiB, at}).bytes, kMiB) << at;
    }
}

TEST(UringPath, belongs_to_the_thread_that_first_submits_not_to_its_maker) {
    std::string why;
    auto path = uring_or_null({}, why);
    if (!path) GTEST_SKIP() << why;
    const OpenFile file(conformance::test_folder(), 1, pattern(4096, 1), false);
    Bytes memory(4096);
    const Operation read{Direction::read, &file.handle, 0, memory.data(), 4096, 1};
    std::thread([&] { EXPECT_EQ(run(*path, read).bytes, 4096u); }).join();
    std::thread([&] { EXPECT_EQ(path->submit({&read, 1}), 1u); }).join();
    path.reset();  // the thread that used the ring has ended, and the destructor must still get the completion
}

TEST(UringPath, without_memory_to_lock_goes_on_unregistered_and_says_so) {
    rlimit limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &limit), 0);
    if (::geteuid() == 0) GTEST_SKIP() << "root may lock any amount of memory";
    const rlimit little{kMiB, limit.rlim_max};  // enough for a ring, too little for an arena
    ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &little), 0);
    const os::Arena arena({.bytes = 2 * kMiB});
    PathOptions options;
    options.arena = arena.memory();
    std::string why;
    const auto path = uring_or_null(options, why);
    ::setrlimit(RLIMIT_MEMLOCK, &limit);
    if (!path) GTEST_SKIP() << why;
    EXPECT_NE(path->capabilities().notes.find("registered buffers"), std::string::npos);
}

TEST(UringPath, with_an_arena_that_cannot_be_registered_goes_on_and_says_so) {
    PathOptions options;
    options.arena = {reinterpret_cast<std::byte*>(std::uintptr_t{1} << 46), 4096};  // nothing is mapped there
    std::string why;
    const auto path = uring_or_null(options, why);
    if (!path) GTEST_SKIP() << why;
    EXPECT_NE(path->capabilities().notes.find("registered buffers"), std::string::npos);
    const OpenFile file(conformance::test_folder(), 1, pattern(4096, 1), false);
    Bytes memory(4096);
    EXPECT_EQ(run(*path, {Direction::read, &file.handle, 0, memory.data(), 4096, 1}).bytes, 4096u);
}

TEST(MemoryStore, a_full_store_takes_what_fits) {
    MemoryStore store;
    store.put(1, Bytes(10));
    store.set_capacity(12);
    const Bytes five(5, std::byte{1});
    EXPECT_EQ(store.write(1, 9, five), 3);
    EXPECT_EQ(store.write(1, 12, five), -ENOSPC);
    EXPECT_EQ(store.contents(1).size(), 12u);
    EXPECT_EQ(store.read(2, 0, {}), -EBADF);
    EXPECT_FALSE(store.resize(2, 5));
}

}  // namespace
}  // namespace penstock::path
