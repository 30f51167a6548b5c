// Reads of up to some MiB without a transfer, where the page cache has the bytes.
#include <cstring>

#include "context/transfer/small/small_read_rig.hpp"

namespace penstock {
namespace {

using LargerReadTest = SmallReadTest;

// Files of memory are read without asking.
int calls_of_larger(const File& file, const CountedReads& system) {
    return file.facts().file_system == "tmpfs" ? system.reads : system.cached_reads;
}

TEST_F(LargerReadTest, is_small_for_the_host_where_the_page_cache_has_the_bytes) {
    const Context context = make();
    const File file = context.open(directory_.file("data"));
    for (const MemoryKind kind : {MemoryKind::pinned, MemoryKind::system}) {
        const Buffer buffer = context.allocate(kFileBytes - 1000, kind);
        for (const std::uint64_t bytes : {kSmallReadBytes + 1, buffer.bytes()}) {
            const MemoryView memory = buffer.view().slice(0, bytes);
            std::memset(memory.data, 0xee, bytes);
            const int before = calls_of_larger(file, system_);
            const auto larger = file.try_small_read(memory, 999);
            ASSERT_TRUE(larger) << bytes;
            EXPECT_EQ(calls_of_larger(file, system_), before + 1);
            EXPECT_EQ(held(memory), stamped(bytes, 999));
            EXPECT_EQ(told(larger->evidence()), told(file.read(memory, 999).evidence));
            EXPECT_NE(larger->plan->plan.find("on the calling thread"), std::string::npos) << larger->plan->plan;
        }
    }
    const Buffer longer = context.allocate(8 * kMiB, MemoryKind::system);
    const int before = calls_of_larger(file, system_);
    EXPECT_FALSE(file.try_small_read(longer.view()));
    EXPECT_EQ(calls_of_larger(file, system_), before) << "the cores copy more than that faster together";
}

TEST_F(LargerReadTest, is_small_for_a_device_by_halves_of_a_slot) {
    const Context context = make();
    const File file = context.open(directory_.file("data"));
    if (file.facts().file_system == "tmpfs") GTEST_SKIP() << "files of tmpfs have mappings";
    const Buffer buffer = context.allocate(kFileBytes - 1000, MemoryKind::device);
    for (const auto& [bytes, parts] : {std::pair{kSmallReadBytes + 1, 1}, std::pair{buffer.bytes(), 3}}) {
        const MemoryView memory = buffer.view().slice(0, bytes);
        std::memset(memory.data, 0xee, bytes);
        const int before = system_.cached_reads;
        const auto larger = file.try_small_read(memory, 999);
        ASSERT_TRUE(larger) << bytes;
        EXPECT_EQ(system_.cached_reads, before + parts);
        EXPECT_EQ(held(memory), stamped(bytes, 999));
        std::memset(memory.data, 0xee, bytes);
        EXPECT_EQ(told(larger->evidence()), told(file.read(memory, 999).evidence)) << "a plan says the same";
        EXPECT_EQ(held(memory), stamped(bytes, 999));
        EXPECT_NE(larger->plan->plan.find("on the calling thread"), std::string::npos) << larger->plan->plan;
        EXPECT_EQ(larger->evidence().paths.at(0).host_copies_bytes, bytes);
    }
    system_.cold_from = 300 * kKiB;
    EXPECT_FALSE(file.try_small_read(buffer.view())) << "the second half waits for storage";
    const Buffer managed = context.allocate(kSmallReadBytes + 1, MemoryKind::managed);
    EXPECT_FALSE(file.try_small_read(managed.view()));
    const Context poor = make({.budget_bytes = 2 * kStagingStep});
    EXPECT_FALSE(poor.open(directory_.file("data")).try_small_read(poor.allocate(kSmallReadBytes + 1).view()))
        << "a small budget has no large slots";
}

TEST_F(LargerReadTest, waits_for_no_storage) {
    const Context context = make();
    const File file = context.open(directory_.file("data"));
    if (file.facts().file_system == "tmpfs") GTEST_SKIP() << "files of tmpfs lie in memory";
    const Buffer buffer = context.allocate(128 * kKiB, MemoryKind::system);
    for (const std::uint64_t cold_from : {std::uint64_t{0}, 100 * kKiB}) {
        system_.cold_from = cold_from;
        EXPECT_FALSE(file.try_small_read(buffer.view()));
    }
    EXPECT_EQ(system_.reads, 0);
    EXPECT_EQ(file.read(buffer.view()).bytes, buffer.bytes());
    EXPECT_EQ(held(buffer.view()), stamped(buffer.bytes()));
    system_.cold_from = UINT64_MAX;
    EXPECT_TRUE(file.try_small_read(buffer.view())) << "what was not there once may be there now";
}

TEST_F(LargerReadTest, asks_the_page_cache_where_a_read_does_not_tell) {
    const Context context = make();
    const File file = context.open(directory_.file("data"));
    if (file.residency(0, kFileBytes).source != "cachestat") GTEST_SKIP() << "no cachestat for these files here";
    const Buffer buffer = context.allocate(128 * kKiB, MemoryKind::system);
    system_.refuses_to_tell = true;
    EXPECT_TRUE(file.try_small_read(buffer.view()));
    EXPECT_EQ(held(buffer.view()), stamped(buffer.bytes()));
    file.sync();
    file.drop_cache(0, kFileBytes);
    if (file.residency(0, kFileBytes).fraction() > 0) GTEST_SKIP() << "the page cache keeps the file";
    EXPECT_FALSE(file.try_small_read(buffer.view()));
}

// Its pages came between the read and the plan.
TEST_F(LargerReadTest, is_one_again_where_a_plan_found_the_file_cold) {
    const Context context = make();
    const File file = context.open(directory_.file("data"));
    const Buffer buffer = context.allocate(128 * kKiB, MemoryKind::system);
    file.sync();
    file.drop_cache(0, kFileBytes);
    if (file.residency(0, kFileBytes).fraction() > 0) GTEST_SKIP() << "the page cache keeps the file";
    system_.brings_from_beyond = true;
    EXPECT_FALSE(file.try_small_read(buffer.view()));
    system_.brings_from_beyond = false;
    file.read(buffer.view(), 0, {.path = PathKind::buffered});
    EXPECT_TRUE(file.try_small_read(buffer.view()));
}

}  // namespace
}  // namespace penstock
