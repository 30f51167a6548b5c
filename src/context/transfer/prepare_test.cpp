// prepare and ranges, before a transfer starts: sums that must not wrap, ranges that must fit, plans without effects.
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <thread>

#include "context/seams.hpp"
#include "context/state.hpp"
#include "context/test_files.hpp"
#include "context/transfer/launch.hpp"
#include "device/forwarding_device.hpp"
#include "os/system.hpp"
#include "penstock/context.hpp"

namespace penstock {
namespace {

using test::fetch;
using test::read_file;
using test::stamped;
using test::TempDirectory;
using test::write_file;

constexpr PathKind kPaths[] = {PathKind::automatic, PathKind::buffered, PathKind::direct,        PathKind::aio,
                               PathKind::uring,     PathKind::mmap,     PathKind::uring_buffered};

class CountingSystem : public os::System {
  public:
    int fdatasync(int fd) override { return ++syncs, System::fdatasync(fd); }
    int ftruncate(int fd, std::uint64_t bytes) override { return ++resizes, System::ftruncate(fd, bytes); }
    int fallocate(int fd, std::uint64_t offset, std::uint64_t bytes) override {
        return ++resizes, System::fallocate(fd, offset, bytes);
    }
    std::atomic<int> syncs{0}, resizes{0};
};

// The emulated device, slow to register memory.
class SlowToRegister : public device::test::ForwardingDevice {
  public:
    bool register_host(void* memory, std::uint64_t bytes, bool read_only, std::string& why) override {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        return ForwardingDevice::register_host(memory, bytes, read_only, why);
    }
};

class Prepare : public testing::Test {
  protected:
    template <typename Action>
    static ErrorCode code_of(const Action& action) {
        try {
            action();
        } catch (const Error& error) {
            return error.code();
        }
        return ErrorCode::ok;
    }
    CountingSystem system_;
    TempDirectory directory_;
    Context context_ = context::make_context({.device = "host"}, {.system = &system_});
};

TEST_F(Prepare, ranges_that_wrap_around_when_joined_are_refused) {
    write_file(directory_.file("data"), stamped(4096));
    const File file = context_.open(directory_.file("data"), {.mode = OpenMode::read_write});
    const Buffer buffer = context_.allocate(4096);
    auto* memory = static_cast<std::byte*>(buffer.data());
    constexpr std::uint64_t kHalf = std::uint64_t{1} << 63;
    const auto at = [&](std::uint64_t bytes) {
        return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(memory) + bytes);
    };
    const Range joined[] = {{&file, 0, memory, kHalf}, {&file, kHalf, at(kHalf), kHalf}};  // together: 0 bytes
    EXPECT_EQ(code_of([&] { context_.start(Direction::write, joined).result(); }), ErrorCode::invalid_argument);
    const Range wrapped[] = {{&file, UINT64_MAX - 9, memory, 20}, {&file, 10, at(20), 4}};
    EXPECT_EQ(code_of([&] { context_.start(Direction::write, wrapped).result(); }), ErrorCode::invalid_argument);
    const Range fine[] = {{&file, 0, memory, 2048}, {&file, 2048, at(2048), 2048}};  // joining itself is allowed
    EXPECT_EQ(context_.start(Direction::write, fine).result().bytes, 4096u);
}

// By them the policy decides whether the page cache takes the write at once.
TEST_F(Prepare, of_a_write_that_may_stay_in_the_page_cache_its_room_is_a_fact) {
    write_file(directory_.file("data"), stamped(4096));
    context::ContextState state(ContextOptions{.device = "host"});
    const auto file = state.open(directory_.file("data"), {.mode = OpenMode::read_write});
    if (!file->direct().usable) GTEST_SKIP() << "no O_DIRECT here";
    std::vector<std::byte> memory(policy::kCachedWriteMax + 4096);
    const auto knows_room = [&](std::uint64_t bytes, const TransferOptions& options = {}) {
        const context::Submission submission{
            .context = state, .direction = Direction::write, .kind = MemoryKind::system, .blocking = true,
            .options = options};
        const context::Preview seen = context::preview(submission, {{file, 0, memory.data(), bytes}});
        return seen.facts.request.dirty_room_bytes.has_value();
    };
    EXPECT_TRUE(knows_room(policy::kCachedWriteMax));
    EXPECT_FALSE(knows_room(policy::kCachedWriteMax + 4096)) << "the storage gets it at once";
    EXPECT_FALSE(knows_room(policy::kCachedWriteMax, {.durable = true}));
    EXPECT_FALSE(knows_room(4096)) << "to ask would take longer than the write";
}

TEST_F(Prepare, a_sum_of_lengths_that_wraps_is_refused) {
    write_file(directory_.file("data"), stamped(4096));
    const File file = context_.open(directory_.file("data"), {.mode = OpenMode::read_write});
    int somewhere = 0;
    constexpr std::uint64_t kMost = (std::uint64_t{1} << 63) - 1;
    const Range ranges[] = {{&file, 0, &somewhere, kMost}, {&file, 0, &somewhere, kMost}, {&file, 0, &somewhere, 2}};
    EXPECT_EQ(code_of([&] { context_.start(Direction::write, ranges, MemoryKind::system); }),
              ErrorCode::invalid_argument);
}

TEST_F(Prepare, a_range_that_leaves_its_buffer_is_refused) {
    write_file(directory_.file("data"), stamped(8192));
    const File file = context_.open(directory_.file("data"));
    const Buffer buffer = context_.allocate(4096);
    auto* memory = static_cast<std::byte*>(buffer.data());
    const Range outside[] = {{&file, 0, memory + 1, 4096}};
    EXPECT_EQ(code_of([&] { context_.start(Direction::read, outside); }), ErrorCode::invalid_argument);
    const Range inside[] = {{&file, 0, memory + 1, 4095}};
    EXPECT_TRUE(context_.start(Direction::read, inside).result().ok());
}

TEST_F(Prepare, absurd_wishes_are_refused_before_anything_is_made) {
    write_file(directory_.file("data"), stamped(1 * kMiB));
    const File file = context_.open(directory_.file("data"));
    const Buffer buffer = context_.allocate(1 * kMiB);
    std::vector<unsigned char> memory(1 * kMiB);
    const MemoryView host = context_.wrap(memory.data(), memory.size(), MemoryKind::system);
    const auto refused = [&](const TransferOptions& each) {
        return code_of([&] { file.read(buffer.view(), 0, each); }) == ErrorCode::invalid_argument &&
               code_of([&] { file.read(host, 0, each); }) == ErrorCode::invalid_argument;
    };
    for (const PathKind path : {PathKind::buffered, PathKind::direct, PathKind::uring}) {
        TransferOptions each;
        each.path = path;
        each.workers = UINT32_MAX;
        EXPECT_TRUE(refused(each));
        each.workers = 0;
        each.depth = UINT32_MAX;
        EXPECT_TRUE(refused(each));
        each.depth = 2;
        for (const std::uint64_t chunk : {std::uint64_t{1} << 63, UINT64_MAX, UINT64_MAX - 4095}) {  // sums that wrap
            each.chunk_bytes = chunk;
            EXPECT_TRUE(refused(each)) << chunk;
        }
        each.chunk_bytes = 4096;
        each.workers = 3;
        EXPECT_FALSE(refused(each));
    }
}

TEST_F(Prepare, nothing_to_move_moves_nothing_by_every_path) {
    write_file(directory_.file("data"), stamped(10000));
    const File file = context_.open(directory_.file("data"), {.mode = OpenMode::read_write});
    const Buffer buffer = context_.allocate(4096);
    for (const PathKind path : kPaths) {
        TransferOptions each;
        each.path = path;
        for (const std::uint64_t offset : {0, 77, 10000}) {
            const MemoryView nothing = buffer.view().slice(5, 0);
            EXPECT_EQ(file.read(nothing, offset, each).or_throw().bytes, 0u) << to_string(path);
            EXPECT_EQ(file.write(nothing, offset, each).or_throw().bytes, 0u) << to_string(path);
            EXPECT_EQ(file.start_read(nothing, offset, each).result().or_throw().bytes, 0u) << to_string(path);
        }
    }
    EXPECT_TRUE(context_.start(Direction::read, {}).result().ok());
    EXPECT_EQ(file.size_bytes(), 10000u);
    EXPECT_TRUE(read_file(directory_.file("data")) == stamped(10000));
}

TEST_F(Prepare, writes_past_the_end_extend_the_file_by_every_path) {
    const Buffer buffer = context_.allocate(2 * kMiB);
    const auto source = stamped(2 * kMiB);
    context_.copy_to_device(buffer.data(), source.data(), source.size());
    for (const PathKind path : kPaths) {
        write_file(directory_.file("data"), stamped(1000));
        const File file = context_.open(directory_.file("data"), {.mode = OpenMode::read_write});
        TransferOptions each;
        each.path = path;
        const Outcome outcome = file.write(buffer.view(), 5000, each);
        ASSERT_TRUE(outcome.ok()) << to_string(path) << ": " << outcome.error.message();
        const auto written = read_file(directory_.file("data"));
        ASSERT_EQ(written.size(), 5000 + 2 * kMiB) << to_string(path);
        EXPECT_TRUE(std::equal(source.begin(), source.end(), written.begin() + 5000)) << to_string(path);
        EXPECT_EQ(std::count(written.begin() + 1000, written.begin() + 5000, 0), 4000);
    }
}

TEST_F(Prepare, a_plan_says_what_start_would_do_and_does_nothing) {
    write_file(directory_.file("data"), stamped(4 * kMiB));
    const File file = context_.open(directory_.file("data"), {.mode = OpenMode::read_write});
    const Buffer buffer = context_.allocate(4 * kMiB);
    int progress = 0;
    TransferOptions each;
    each.durable = true;
    each.progress = [&](std::uint64_t, std::uint64_t) { ++progress; };
    const int resizes = system_.resizes;
    for (const PathKind path : kPaths) {
        each.path = path;
        const Range past_end[] = {{&file, 2 * kMiB, buffer.data(), 4 * kMiB}};
        context_.plan(Direction::write, past_end, MemoryKind::device, each);
    }
    EXPECT_EQ(progress, 0);
    EXPECT_EQ(system_.syncs, 0);
    EXPECT_EQ(system_.resizes, resizes);
    EXPECT_EQ(file.size_bytes(), 4 * kMiB);
    EXPECT_TRUE(read_file(directory_.file("data")) == stamped(4 * kMiB));
    for (const std::uint64_t bytes : {4096 * std::uint64_t{1}, 4 * kMiB}) {
        const Range range[] = {{&file, 0, buffer.data(), bytes}};
        const Plan plan = context_.plan(Direction::read, range);
        const Transfer transfer = context_.start(Direction::read, range);
        EXPECT_EQ(transfer.plan().describe(), plan.describe());
        EXPECT_TRUE(transfer.result().ok());  // the write below uses the same buffer
    }
    each.path = PathKind::buffered;  // the counters can count
    EXPECT_TRUE(file.write(buffer.view(), 0, each).ok());
    EXPECT_GT(progress, 0);
    EXPECT_EQ(system_.syncs, 1);
}

TEST_F(Prepare, a_plan_registers_no_mapping) {
    const TempDirectory in_memory("/dev/shm");
    write_file(in_memory.file("data"), stamped(2 * kMiB));
    const File file = context_.open(in_memory.file("data"));
    if (file.facts().file_system != "tmpfs") GTEST_SKIP() << "/dev/shm is " << file.facts().file_system;
    const Buffer buffer = context_.allocate(2 * kMiB);
    const Range range[] = {{&file, 0, buffer.data(), 2 * kMiB}};
    TransferOptions each;
    each.path = PathKind::mmap;
    const Plan plan = context_.plan(Direction::read, range, MemoryKind::device, each);
    const auto from_mapping = [&] {
        const Evidence evidence = file.read(buffer.view()).or_throw().evidence;
        return evidence.paths.at(0).from_pinned_mapping;
    };
    EXPECT_FALSE(from_mapping());
    const Transfer transfer = context_.start(Direction::read, range, MemoryKind::device, each);
    EXPECT_EQ(transfer.plan().describe(), plan.describe());
    EXPECT_TRUE(transfer.result().ok());
    EXPECT_TRUE(from_mapping());  // the transfer did register it
}

TEST_F(Prepare, seconds_count_from_start_and_not_from_when_the_mapping_was_registered) {
    const TempDirectory in_memory("/dev/shm");
    write_file(in_memory.file("data"), stamped(2 * kMiB));
    const Context context = context::make_context({}, {.device = std::make_shared<SlowToRegister>()});
    const File file = context.open(in_memory.file("data"));
    if (file.facts().file_system != "tmpfs") GTEST_SKIP() << "/dev/shm is " << file.facts().file_system;
    const Buffer buffer = context.allocate(2 * kMiB);
    TransferOptions each;
    each.path = PathKind::mmap;
    EXPECT_GE(file.read(buffer.view(), 0, each).or_throw().seconds, 0.1);
    EXPECT_LT(file.read(buffer.view(), 0, each).or_throw().seconds, 0.1);  // registered: nothing to wait for
}

TEST_F(Prepare, a_submission_refused_for_one_closed_file_leaves_the_others_usable) {
    write_file(directory_.file("one"), stamped(4096));
    write_file(directory_.file("two"), stamped(4096));
    File one = context_.open(directory_.file("one"));
    File two = context_.open(directory_.file("two"));
    two.close();
    const Buffer buffer = context_.allocate(8192);
    auto* memory = static_cast<std::byte*>(buffer.data());
    const Range ranges[] = {{&one, 0, memory, 4096}, {&two, 0, memory + 4096, 4096}};
    EXPECT_THROW(context_.start(Direction::read, ranges), Error);
    auto closing = std::async(std::launch::async, [one]() mutable { one.close(); });
    ASSERT_EQ(closing.wait_for(std::chrono::seconds(5)), std::future_status::ready) << "close() waits for no one";
}

// Buffers that are neighbours by chance: ranges that continue each other in the file must not become one copy.
TEST_F(Prepare, ranges_in_neighbouring_buffers_stay_apart) {
    constexpr std::uint64_t kBytes = 256 * kKiB;
    write_file(directory_.file("data"), stamped(2 * kBytes));
    const File file = context_.open(directory_.file("data"));
    std::vector<Buffer> buffers;
    for (int i = 0; i < 64; ++i) buffers.push_back(context_.allocate(kBytes));
    std::sort(buffers.begin(), buffers.end(), [](const Buffer& a, const Buffer& b) { return a.data() < b.data(); });
    const auto pair = std::adjacent_find(buffers.begin(), buffers.end(), [](const Buffer& a, const Buffer& b) {
        return static_cast<std::byte*>(a.data()) + kBytes == b.data();
    });
    if (pair == buffers.end()) GTEST_SKIP() << "no two buffers are neighbours";
    const Range ranges[] = {{&file, 0, pair->data(), kBytes}, {&file, kBytes, (pair + 1)->data(), kBytes}};
    for (const PathKind path : kPaths) {
        TransferOptions each;
        each.path = path;
        const Outcome outcome = context_.start(Direction::read, ranges, MemoryKind::device, each).result();
        ASSERT_TRUE(outcome.ok()) << to_string(path) << ": " << outcome.error.message();
        EXPECT_TRUE(fetch(context_, (pair + 1)->data(), kBytes) == stamped(kBytes, kBytes));
    }
}

// Unaligned writes by O_DIRECT: whole pages past the cache, edges through it. Beside pages that are in the cache
// already (in large folios, where the kernel has them) neither may show stale or lost bytes.
TEST_F(Prepare, edges_and_bodies_of_direct_writes_never_spoil_each_other) {
    constexpr std::uint64_t kSize = 2 * kMiB;
    const Buffer buffer = context_.allocate(kSize);
    std::vector<unsigned char> expected(kSize, 0xAB);
    write_file(directory_.file("data"), expected);
    const File file = context_.open(directory_.file("data"), {.mode = OpenMode::read_write});
    if (!file.facts().direct) GTEST_SKIP() << "no O_DIRECT here: " << file.facts().direct_cause;
    auto* memory = static_cast<std::byte*>(buffer.data());
    for (std::uint64_t round = 0; round < 40; ++round) {
        const auto source = stamped(kSize, round << 32);
        context_.copy_to_device(memory, source.data(), kSize);
        if (round % 2 == 0) {  // fills the cache
            EXPECT_TRUE(read_file(directory_.file("data")) == expected);
        }
        std::vector<Range> ranges;  // neighbours that meet inside pages, their memory not in one piece
        std::uint64_t at = 100 + round;
        for (std::uint64_t i = 0; at + 300000 < kSize; ++i) {
            const std::uint64_t bytes = 4096 * (i % 9) + 1000 + 37 * i + round;
            ranges.push_back({&file, at, memory + (at ^ 64), bytes});
            std::copy_n(source.begin() + static_cast<long>(at ^ 64), bytes, expected.begin() + static_cast<long>(at));
            at += bytes;
        }
        TransferOptions each;
        each.path = round % 3 == 0 ? PathKind::direct : PathKind::uring;
        ASSERT_TRUE(context_.start(Direction::write, ranges, MemoryKind::device, each).result().ok());
        ASSERT_TRUE(read_file(directory_.file("data")) == expected) << "through the cache, round " << round;
        file.drop_cache();
        ASSERT_TRUE(read_file(directory_.file("data")) == expected) << "from the disk, round " << round;
    }
}

}  // namespace
}  // namespace penstock
