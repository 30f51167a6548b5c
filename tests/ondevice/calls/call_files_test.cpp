// Files that device code opens, reads, writes and closes by calls.
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include "ondevice/calls/calls_rig.hpp"

namespace penstock::ondevice {
namespace {

constexpr u64 kNewFile = file_read | file_write | file_create;
constexpr u64 kLog = file_append | file_create;

long long opened(const CallsRef& calls, const std::string& name, u64 flags) {
    const CallEnd end = calls.open(name.c_str(), flags);
    EXPECT_EQ(end.status, Status::ok) << -end.value;
    return end.value;
}

TEST(CallFiles, bytes_longer_than_a_slot_are_written_and_read_back) {
    CallsRig rig({8, 512});
    const CallFolder folder;
    const CallsRef calls = rig.calls();
    const long long file = opened(calls, folder / "data", kNewFile);
    std::vector<u8> bytes(10'000), back(12'000, 1);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<u8>(i * 7 + i / 256);
    EXPECT_EQ(calls.write(file, 100, bytes.data(), bytes.size()).value, 10'000);
    const CallEnd read = calls.read(file, 100, back.data(), back.size());
    EXPECT_EQ(read.value, 10'000) << "the file ends there";
    EXPECT_EQ(std::memcmp(back.data(), bytes.data(), bytes.size()), 0);
    EXPECT_EQ(back[10'000], 1);
    EXPECT_EQ(calls.read(file, 10'100, back.data(), 5).value, 0);
    EXPECT_EQ(calls.sync(file).status, Status::ok);
    EXPECT_EQ(calls.close(file).status, Status::ok);
    EXPECT_EQ(text_of(folder / "data").size(), 10'100u);
}

TEST(CallFiles, the_position_moves_with_what_is_moved_and_by_seek) {
    CallsRig rig({8, 512});
    const CallFolder folder;
    const CallsRef calls = rig.calls();
    const long long file = opened(calls, folder / "data", kNewFile);
    char back[4] = {};
    calls.write(file, at_position, "abcdef", 6);
    EXPECT_EQ(calls.seek(file, -4, SeekFrom::position).value, 2);
    EXPECT_EQ(calls.read(file, at_position, back, 2).value, 2);
    EXPECT_STREQ(back, "cd");
    calls.write(file, at_position, "XY", 2);
    EXPECT_EQ(calls.seek(file, -1, SeekFrom::end).value, 5);
    EXPECT_EQ(calls.seek(file, 9, SeekFrom::start).value, 9);
    calls.write(file, at_position, "!", 1);
    EXPECT_EQ(text_of(folder / "data"), std::string("abcdXY\0\0\0!", 10));
    const CallEnd bad = calls.seek(file, -1, SeekFrom::start);
    EXPECT_EQ(bad.status, Status::out_of_range);
    EXPECT_EQ(bad.value, -EINVAL);
}

TEST(CallFiles, numbers_are_not_cut) {
    CallsRig rig({8, 512});
    const CallFolder folder;
    const CallsRef calls = rig.calls();
    const long long file = opened(calls, folder / "data", kNewFile), other = file + (1LL << 32);
    EXPECT_EQ(calls.write(other, 0, "abc", 3).value, -EBADF);
    EXPECT_EQ(calls.close(other).value, -EBADF);
    EXPECT_EQ(calls.write(file, 0, "abc", 3).status, Status::ok) << "it is still open";
}

TEST(CallFiles, errors_keep_their_number) {
    CallsRig rig({8, 512}, {.files = 1});
    const CallFolder folder;
    const CallsRef calls = rig.calls();
    const CallEnd none = calls.open((folder / "none").c_str(), file_read);
    EXPECT_EQ(none.status, Status::io_error);
    EXPECT_EQ(none.value, -ENOENT);
    EXPECT_EQ(calls.open((folder / "").c_str(), file_read).value, -EISDIR);
    EXPECT_EQ(calls.open("/dev/null", file_write).value, -ESPIPE);
    EXPECT_EQ(calls.open((folder / "x").c_str(), file_create).value, -EINVAL) << "neither read nor write";
    EXPECT_EQ(calls.open("", file_read).value, -ENOENT);
    const long long file = opened(calls, folder / "x", file_write | file_create);
    EXPECT_EQ(calls.open((folder / "x").c_str(), file_read).value, -EMFILE);
    char byte = 0;
    const CallEnd read = calls.read(file, 0, &byte, 1);
    EXPECT_EQ(read.status, Status::read_only) << "as the mailbox tells of a file that was not opened for that";
    EXPECT_EQ(read.value, -EBADF);
    EXPECT_EQ(calls.close(file).status, Status::ok);
    EXPECT_EQ(calls.open((folder / "x").c_str(), file_write | file_create | file_new).value, -EEXIST);
    EXPECT_EQ(rig.service().failures(), 0u) << "these are no functions that threw";
}

TEST(CallFiles, the_number_of_a_closed_file_names_no_other) {
    CallsRig rig;
    const CallFolder folder;
    const CallsRef calls = rig.calls();
    const long long old = opened(calls, folder / "a", kNewFile);
    EXPECT_EQ(calls.close(old).status, Status::ok);
    const long long next = opened(calls, folder / "b", kNewFile);
    EXPECT_NE(old, next);
    EXPECT_EQ(calls.write(old, 0, "x", 1).status, Status::invalid);
    EXPECT_EQ(calls.close(old).value, -EBADF);
    EXPECT_EQ(calls.write(next, 0, "y", 1).status, Status::ok);
    EXPECT_EQ(calls.write(next + 1, 0, "z", 1).status, Status::invalid);
    EXPECT_EQ(text_of(folder / "b"), "y");
}

TEST(CallFiles, the_end_of_the_service_closes_what_is_open) {
    const auto descriptors = [] {
        std::size_t count = 0;
        for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
        return count;
    };
    CallsRig rig;
    const CallFolder folder;
    const std::size_t before = descriptors();
    opened(rig.calls(), folder / "a", kNewFile);
    opened(rig.calls(), folder / "b", kNewFile);
    EXPECT_EQ(descriptors(), before + 2);
    rig.service().end();
    EXPECT_EQ(descriptors(), before);
}

TEST(CallFiles, records_that_are_appended_stay_whole) {
    CallsRig rig({4, 512}, {.threads = 3});
    const CallFolder folder;
    const long long log = opened(rig.calls(), folder / "log", kLog);
    constexpr u32 writers = 4, lines = 40;
    std::vector<std::thread> threads;
    std::atomic<u32> failed{0};
    for (u32 writer = 0; writer < writers; ++writer) {
        threads.emplace_back([&, writer] {
            for (u32 line = 0; line < lines; ++line) {
                failed += !rig.calls().print(log, "writer ", writer, " line ", line, " of ", lines).ok();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(failed, 0u);
    std::istringstream text(text_of(folder / "log"));
    std::set<std::string> seen;
    for (std::string line; std::getline(text, line);) EXPECT_TRUE(seen.insert(line).second) << line;
    EXPECT_EQ(seen.size(), writers * lines);
    EXPECT_EQ(seen.count("writer 3 line 39 of 40"), 1u);
}

TEST(CallFiles, a_record_longer_than_a_slot_is_refused_whole) {
    CallsRig rig({4, 64});
    const CallFolder folder;
    const long long log = opened(rig.calls(), folder / "log", kLog);
    const std::string record(rig.calls().room(), 'r');
    EXPECT_EQ(rig.calls().append(log, record.data(), rig.calls().room()).value, rig.calls().room());
    EXPECT_EQ(rig.calls().append(log, record.data(), rig.calls().room() + 1).status, Status::invalid);
    EXPECT_EQ(text_of(folder / "log"), record);
}

// A disk whose sync fails once, as Linux tells it.
struct LossySystem : os::System {
    std::atomic<int> syncs{0};
    int fdatasync(int fd) override {
        if (syncs++ != 0) return os::System::fdatasync(fd);
        errno = EIO;
        return -1;
    }
};

TEST(CallFiles, a_sync_that_failed_fails_from_then_on) {
    LossySystem system;
    CallsRig rig({4, 512}, {.system = &system});
    const CallFolder folder;
    const long long file = opened(rig.calls(), folder / "x", kNewFile);
    for (int turn = 0; turn < 2; ++turn) {
        const CallEnd end = rig.calls().sync(file);
        EXPECT_EQ(end.status, Status::io_error);
        EXPECT_EQ(end.value, -EIO);
    }
}

TEST(CallFiles, a_write_past_the_limit_of_the_process_fails_and_the_process_lives) {
    CallsRig rig;
    const CallFolder folder;
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const rlimit little{1000, before.rlim_max};
    const long long file = opened(rig.calls(), folder / "x", kNewFile);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
    const CallEnd end = rig.calls().write(file, 2000, "x", 1);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_EQ(end.status, Status::io_error);
    EXPECT_EQ(end.value, -EFBIG);
}

}  // namespace
}  // namespace penstock::ondevice
