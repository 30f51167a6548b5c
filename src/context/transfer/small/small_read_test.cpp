// Small reads without a transfer: the same bytes and the same evidence, or nothing.
#include <array>
#include <cstring>
#include <fstream>
#include <thread>

#include "context/transfer/small/small_read_rig.hpp"

namespace penstock {
namespace {

using test::fetch;

TEST_F(SmallReadTest, brings_the_bytes_and_evidence_of_a_transfer_by_one_call) {
    const Context context = make();
    const File file = context.open(directory_.file("data"));
    for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned, MemoryKind::system}) {
        const Buffer buffer = context.allocate(kSmallReadBytes, kind);
        for (const std::uint64_t bytes : {std::uint64_t{1}, std::uint64_t{4096}, kSmallReadBytes}) {
            const MemoryView memory = buffer.view().slice(0, bytes);
            const int before = system_.reads;
            const auto small = file.try_small_read(memory, 12'345);
            EXPECT_EQ(system_.reads, before + 1);
            ASSERT_TRUE(small) << bytes;
            EXPECT_EQ(small->memory.bytes, bytes);
            EXPECT_EQ(held(memory), stamped(bytes, 12'345));
            EXPECT_GT(small->seconds, 0);
            const Outcome whole = file.read(memory, 12'345);
            EXPECT_EQ(told(small->evidence()), told(whole.evidence));
            EXPECT_EQ(small->evidence().pinned_peak_bytes, whole.evidence.pinned_peak_bytes);
        }
    }
}

TEST_F(SmallReadTest, waits_for_work_on_its_memory) {
    const Context context = make();
    const File file = context.open(directory_.file("data"));
    const auto stream = context.device().make_stream();
    const auto native = reinterpret_cast<std::uintptr_t>(stream->native_handle());
    const Buffer buffer = context.allocate(64 * kMiB);
    for (const std::uint64_t bytes : {std::uint64_t{4096}, kFileBytes - 1000}) {
        if (bytes > kSmallReadBytes && file.facts().file_system == "tmpfs") continue;
        stream->fill(buffer.view().data, buffer.bytes(), 255);
        const MemoryView memory = buffer.view().slice(buffer.bytes() - bytes, bytes);
        ASSERT_TRUE(file.try_small_read(memory, 999, native)) << bytes;
        stream->synchronize();
        EXPECT_EQ(held(memory), stamped(bytes, 999));
    }
    EXPECT_FALSE(file.try_small_read(buffer.view().slice(0, 4096), 0, native + 1)) << "there is no such stream";
}

TEST_F(SmallReadTest, is_none_where_a_transfer_does_more_or_less) {
    const Context context = make();
    const File file = context.open(directory_.file("data"));
    const Buffer buffer = context.allocate(kSmallReadBytes);
    const MemoryView block = buffer.view().slice(0, 4096);
    EXPECT_FALSE(file.try_small_read(buffer.view().slice(0, 0), 0)) << "nothing is asked for";
    EXPECT_FALSE(file.try_small_read(block, kFileBytes - 4095)) << "the file ends in it";
    EXPECT_FALSE(file.try_small_read(block, kFileBytes)) << "the file ends before it";
    EXPECT_FALSE(file.try_small_read(block, UINT64_MAX - 1)) << "no file has that offset";
    EXPECT_FALSE(file.try_small_read({nullptr, 4096, MemoryKind::device}, 0));
    EXPECT_FALSE(file.try_small_read({static_cast<std::byte*>(block.data) + kSmallReadBytes - 1, 4096}, 0))
        << "it leaves the buffer";
    EXPECT_TRUE(file.try_small_read(block, kFileBytes - 4096));
}

TEST_F(SmallReadTest, is_none_where_the_context_names_another_way) {
    for (const PathKind path : {PathKind::direct, PathKind::mmap, PathKind::uring}) {
        const Context context = make({.path = path});
        const Buffer buffer = context.allocate(4096);
        EXPECT_FALSE(context.open(directory_.file("data")).try_small_read(buffer.view()));
    }
    const Context workers = make({.workers = 2});
    EXPECT_FALSE(workers.open(directory_.file("data")).try_small_read(workers.allocate(4096).view()));
    const Context named = make({.path = PathKind::buffered, .strict = true});
    EXPECT_TRUE(named.open(directory_.file("data")).try_small_read(named.allocate(4096).view()));
    EXPECT_EQ(system_.reads, 1);
}

TEST_F(SmallReadTest, many_bring_the_bytes_and_evidence_of_one_each) {
    const Context context = make();
    const File file = context.open(directory_.file("data"));
    for (const MemoryKind kind : {MemoryKind::device, MemoryKind::system}) {
        const Buffer buffer = context.allocate(100'000, kind);
        auto* const data = static_cast<unsigned char*>(buffer.data());
        std::vector<Range> ranges;
        for (std::uint64_t at = 0; at + 3000 <= 100'000; at += 3000) {
            ranges.push_back({nullptr, 200'000 - 2 * at, data + at, ranges.size() % 2 == 0 ? 2000u : 3000u});
        }
        const int before = system_.reads;
        const auto made = file.try_small_reads(buffer.view(), ranges);
        ASSERT_TRUE(made);
        EXPECT_EQ(system_.reads - before, static_cast<int>(ranges.size()));
        EXPECT_EQ(made->operations, ranges.size());
        EXPECT_EQ(made->samples.size(), 2u);
        EXPECT_GT(made->seconds, 0);
        std::uint64_t bytes = 0;
        for (const Range& range : ranges) {
            const auto* held = static_cast<const unsigned char*>(range.memory);
            ASSERT_EQ(std::vector<unsigned char>(held, held + range.bytes), stamped(range.bytes, range.offset_bytes));
            bytes += range.bytes;
        }
        EXPECT_EQ(made->bytes, bytes);
        for (const SmallRead& sample : made->samples) {
            const auto one = file.try_small_read(sample.memory, sample.offset_bytes);
            EXPECT_EQ(told(sample.evidence()), told(one->evidence()));
        }
    }
}

TEST_F(SmallReadTest, many_that_continue_each_other_are_one_call) {
    const Context context = make();
    const File file = context.open(directory_.file("data"));
    const Buffer buffer = context.allocate(kFileBytes, MemoryKind::system);
    auto* const data = static_cast<unsigned char*>(buffer.data());
    const auto calls = [&](std::uint64_t in_file, std::uint64_t in_memory) {
        std::vector<Range> ranges;
        for (std::uint64_t at = 0; at < 3; ++at) {
            ranges.push_back({nullptr, 1000 + at * in_file, data + at * in_memory, 1000});
        }
        std::memset(data, 0, 3 * in_memory);
        const int before = system_.reads;
        const auto made = file.try_small_reads(buffer.view(), ranges);
        EXPECT_EQ(made->operations, static_cast<std::uint64_t>(system_.reads - before));
        EXPECT_EQ(made->bytes, 3000u);
        for (const Range& range : ranges) {
            const auto* held = static_cast<const unsigned char*>(range.memory);
            EXPECT_EQ(std::vector<unsigned char>(held, held + range.bytes), stamped(range.bytes, range.offset_bytes));
        }
        return made->operations;
    };
    EXPECT_EQ(calls(1000, 1000), 1u);
    EXPECT_EQ(calls(1000, 1001), 3u) << "they lie apart in memory";
    EXPECT_EQ(calls(1001, 1000), 3u) << "they lie apart in the file";
}

TEST_F(SmallReadTest, many_are_one_call_for_each_mib) {
    constexpr std::uint64_t kLarge = 20 * kSmallReadBytes;
    write_file(directory_.file("large"), stamped(kLarge));
    const Context context = make();
    const Buffer buffer = context.allocate(kLarge, MemoryKind::system);
    auto* const data = static_cast<unsigned char*>(buffer.data());
    std::vector<Range> ranges;
    for (std::uint64_t at = 0; at < kLarge; at += kSmallReadBytes) {
        ranges.push_back({nullptr, at, data + at, kSmallReadBytes});
    }
    const auto made = context.open(directory_.file("large")).try_small_reads(buffer.view(), ranges);
    EXPECT_EQ(made->operations, 2u);
    EXPECT_EQ(made->samples.size(), 1u) << "each is a small read";
    EXPECT_EQ(std::vector<unsigned char>(data, data + kLarge), stamped(kLarge));
}

TEST_F(SmallReadTest, many_are_left_to_a_transfer_where_one_would_be) {
    const Context context = make();
    File file = context.open(directory_.file("data"));
    const Buffer buffer = context.allocate(128 * kKiB);
    auto* const data = static_cast<std::byte*>(buffer.data());
    const Range good{nullptr, 0, data, 4096};
    const auto refused = [&](const Range& second) {
        const std::array<Range, 2> both{good, second};
        return !file.try_small_reads(buffer.view().slice(0, 100'000), both);
    };
    EXPECT_FALSE(refused({nullptr, 0, data + 4096, 4096}));
    EXPECT_TRUE(refused({nullptr, 0, data + 99'000, 4096})) << "it leaves the memory";
    EXPECT_TRUE(refused({nullptr, 0, data - 1, 4096}));
    EXPECT_TRUE(refused({nullptr, 0, data, kSmallReadBytes + 1})) << "it is large";
    EXPECT_TRUE(refused({nullptr, kFileBytes - 4095, data, 4096})) << "the file ends in it";
    EXPECT_FALSE(file.try_small_reads({data, 200 * kKiB, MemoryKind::device}, {&good, 1})) << "there is no such buffer";
    file.close();
    EXPECT_THROW(static_cast<void>(refused(good)), Error);
}

TEST_F(SmallReadTest, that_fails_or_is_short_is_left_to_a_transfer) {
    const Context context = make();
    const File file = context.open(directory_.file("data"));
    const Buffer buffer = context.allocate(4096);
    system_.most_bytes = 1000;
    EXPECT_FALSE(file.try_small_read(buffer.view(), 0));
    EXPECT_EQ(file.read(buffer.view(), 0).bytes, 4096u);
    system_.failure = EIO;
    EXPECT_FALSE(file.try_small_read(buffer.view(), 0));
    const Outcome failed = file.read(buffer.view(), 0);
    EXPECT_FALSE(failed.ok());
    EXPECT_EQ(failed.error.system_code, EIO);
}

TEST_F(SmallReadTest, of_a_closed_file_is_refused) {
    const Context context = make();
    File file = context.open(directory_.file("data"));
    const Buffer buffer = context.allocate(4096);
    file.close();
    EXPECT_THROW(static_cast<void>(file.try_small_read(buffer.view(), 0)), Error);
    EXPECT_EQ(system_.reads, 0);
}

// The plan is asked of the profile once for each size, and answered as a transfer's.
TEST_F(SmallReadTest, by_a_profile_goes_as_the_profile_says) {
    const auto context_by = [&](PathKind better) {
        Profile profile = make().identity(directory_.path());
        for (const PathKind path : {PathKind::buffered, PathKind::direct}) {
            for (const bool cached : {true, false}) {
                ProfileRow row;
                row.path = path;
                row.cached = cached;
                row.bytes = 4096;
                row.seconds = path == better ? 1e-6 : 1e-3;
                row.samples = 5;
                profile.rows.push_back(row);
            }
        }
        const std::string name = directory_.file(std::string(to_string(better)) + ".csv");
        std::ofstream(name) << profile_text(profile);
        return make({.profiles = {name}});
    };
    const Context buffered = context_by(PathKind::buffered), direct = context_by(PathKind::direct);
    const File file = buffered.open(directory_.file("data")), past = direct.open(directory_.file("data"));
    if (!past.facts().direct) GTEST_SKIP() << "no O_DIRECT here: " << past.facts().direct_cause;
    const Buffer buffer = buffered.allocate(32 * kKiB), other = direct.allocate(32 * kKiB);
    const MemoryView block = buffer.view().slice(0, 4096);
    for (int turn = 0; turn < 2; ++turn) {
        const auto small = file.try_small_read(block, 0);
        ASSERT_TRUE(small);
        EXPECT_GT(small->evidence().predicted_seconds, 0);
        EXPECT_EQ(told(small->evidence()), told(file.read(block, 0).evidence));
        EXPECT_FALSE(past.try_small_read(other.view().slice(0, 4096), 0)) << "the profile wants O_DIRECT";
    }
    EXPECT_FALSE(file.try_small_read(buffer.view(), 0)) << "the page cache is asked first";
}

TEST_F(SmallReadTest, finds_buffers_among_many_that_are_gone) {
    const Context context = make();
    const File file = context.open(directory_.file("data"));
    std::vector<Buffer> kept;
    for (int turn = 0; turn < 500; ++turn) {
        Buffer buffer = context.allocate(4096);
        ASSERT_TRUE(file.try_small_read(buffer.view(), 0));
        ASSERT_FALSE(file.try_small_read({static_cast<std::byte*>(buffer.data()) + 4000, 4096}, 0)) << turn;
        if (turn % 3 == 0) kept.push_back(std::move(buffer));
    }
    for (const Buffer& buffer : kept) EXPECT_TRUE(file.try_small_read(buffer.view(), 0));
}

TEST_F(SmallReadTest, may_be_made_by_many_threads_while_the_file_closes) {
    const Context context = make();
    for (int turn = 0; turn < 20; ++turn) {
        File file = context.open(directory_.file("data"));
        std::atomic<int> wrong{0}, made{0};
        std::vector<std::thread> callers;
        for (int self = 0; self < 3; ++self) {
            callers.emplace_back([&, self] {
                const Buffer buffer = context.allocate(4096);
                for (std::uint64_t offset = 0; offset < kFileBytes - 4096; offset += 1000 + self) {
                    try {
                        if (!file.try_small_read(buffer.view(), offset)) ++wrong;
                        ++made;
                        if (fetch(context, buffer.data(), 4096) != stamped(4096, offset)) ++wrong;
                    } catch (const Error&) {  // it is closed
                        return;
                    }
                }
            });
        }
        while (made < 3 + turn) std::this_thread::yield();
        File(file).close();
        for (auto& caller : callers) caller.join();
        EXPECT_EQ(wrong, 0);
    }
}

}  // namespace
}  // namespace penstock
