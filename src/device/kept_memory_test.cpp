// Blocks that are kept for their next holder, on a device of a few lines.
#include "device/kept_memory.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <new>
#include <thread>
#include <vector>

#include "penstock/error.hpp"

namespace penstock::device {
namespace {

class KeptMemoryTest : public ::testing::Test {
  protected:
    KeptMemory::MemorySource source() {
        return {[this](std::uint64_t bytes) -> void* {
                    if (allocated >= most_allocated) {
                        ++refusals;
                        throw Error(ErrorCode::out_of_memory, "allocate", "full", "free");
                    }
                    ++allocated;
                    return ::operator new(bytes);
                },
                [this](void* memory) {
                    --allocated;
                    ++releases;
                    ::operator delete(memory);
                },
                [this] {
                    ++waits;
                    return settles;
                }};
    }
    std::atomic<int> allocated{0}, releases{0}, waits{0}, refusals{0};
    int most_allocated = 1000;
    bool settles = true;
};

TEST_F(KeptMemoryTest, a_block_comes_back_after_the_device_has_ended_its_work) {
    KeptMemory memory(source(), kMiB);
    void* first = memory.take(5000);
    EXPECT_EQ(waits, 0);
    EXPECT_TRUE(memory.give_back(first));
    EXPECT_EQ(memory.take(6000), first) << "of the same size in pages";
    EXPECT_EQ(waits, 1);
    EXPECT_EQ(allocated, 1);
    EXPECT_TRUE(memory.give_back(first));
}

TEST_F(KeptMemoryTest, one_wait_is_for_all_blocks_that_were_given_back_before_it) {
    KeptMemory memory(source(), kMiB);
    void *a = memory.take(4096), *b = memory.take(4096);
    memory.give_back(a);
    memory.give_back(b);
    EXPECT_EQ(memory.take(1), a);
    EXPECT_EQ(memory.take(1), b);
    EXPECT_EQ(waits, 1);
    memory.give_back(a);
    EXPECT_EQ(memory.take(1), a);
    EXPECT_EQ(waits, 2) << "it was given back after the first wait";
    memory.give_back(a);
    memory.give_back(b);
}

TEST_F(KeptMemoryTest, with_spare_blocks_many_takes_need_one_wait) {
    KeptMemory memory(source(), kMiB, 4 * 4096);
    for (int i = 0; i < 400; ++i) memory.give_back(memory.take(4096));
    EXPECT_EQ(allocated, 4);
    EXPECT_EQ(waits, 99) << "the first four are new";
    for (int i = 0; i < 10; ++i) memory.give_back(memory.take(5 * 4096));
    EXPECT_EQ(allocated, 5) << "of a size that is larger than all spare bytes there is one";
    for (int i = 0; i < 400; ++i) memory.give_back(memory.take(2 * 4096));
    EXPECT_EQ(allocated, 7) << "as many as the spare bytes have room for";
}

TEST_F(KeptMemoryTest, spare_blocks_of_small_sizes_are_few) {
    KeptMemory memory(source(), kMiB, kMiB);
    for (int i = 0; i < 400; ++i) memory.give_back(memory.take(4096));
    EXPECT_EQ(allocated, static_cast<int>(KeptMemory::kMostSpares));
}

TEST_F(KeptMemoryTest, spare_blocks_of_one_size_push_none_of_another_size_out) {
    const auto take_all_sizes = [&](KeptMemory& memory, std::uint64_t sizes) {
        for (int turn = 0; turn < 100; ++turn) {
            for (std::uint64_t size = 1; size <= sizes; ++size) memory.give_back(memory.take(size * 4096));
        }
    };
    KeptMemory few_bytes(source(), 64ULL * 4096, 16ULL * 4096);
    take_all_sizes(few_bytes, 8);
    EXPECT_EQ(releases, 0) << "one block of each takes 36 pages of 64";
    EXPECT_LE(waits, 100) << "a wait is for all sizes";
    KeptMemory few_blocks(source(), 64 * kMiB, 16 * kMiB);
    take_all_sizes(few_blocks, 30);
    EXPECT_EQ(releases, 0) << "16 of each would be more than there may be";
}

TEST_F(KeptMemoryTest, where_the_device_has_no_more_memory_a_block_is_waited_for) {
    KeptMemory memory(source(), kMiB, kMiB);
    void* other = memory.take(3 * 4096);
    most_allocated = 4;
    for (int i = 0; i < 100; ++i) memory.give_back(memory.take(4096));
    EXPECT_EQ(allocated, 4);
    EXPECT_EQ(releases, 0) << "those that are kept serve";
    EXPECT_LE(refusals, 1) << "to ask a device that is full takes long";
    memory.give_back(other);
    most_allocated = 1000;
    for (int i = 0; i < 2000; ++i) memory.give_back(memory.take(4096));
    EXPECT_EQ(allocated, 1 + static_cast<int>(KeptMemory::kMostSpares)) << "it is asked again some time later";
}

TEST_F(KeptMemoryTest, a_block_whose_work_may_go_on_is_not_handed_out) {
    KeptMemory memory(source(), kMiB);
    void* first = memory.take(4096);
    memory.give_back(first);
    settles = false;
    void* second = memory.take(4096);
    EXPECT_EQ(releases, 1) << "the driver waits before it frees";
    memory.give_back(second);
}

TEST_F(KeptMemoryTest, the_oldest_blocks_make_room) {
    KeptMemory memory(source(), 3 * 4096);
    std::vector<void*> blocks;
    for (int i = 0; i < 5; ++i) blocks.push_back(memory.take(4096));
    for (void* block : blocks) memory.give_back(block);
    EXPECT_EQ(memory.kept_bytes(), 3 * 4096u);
    EXPECT_EQ(releases, 2);
    EXPECT_EQ(memory.take(4096), blocks[2]);
    memory.give_back(blocks[2]);
    void* large = memory.take(5 * 4096);
    EXPECT_TRUE(memory.give_back(large));
    EXPECT_EQ(memory.kept_bytes(), 3 * 4096u) << "one that is larger than all that may be kept drives out none";
}

TEST_F(KeptMemoryTest, what_is_kept_is_released_where_a_driver_has_no_more) {
    KeptMemory memory(source(), kMiB);
    most_allocated = 1;
    memory.give_back(memory.take(4096));
    void* other = memory.take(64 * 1024);
    EXPECT_EQ(releases, 1);
    EXPECT_THROW(memory.take(4096), Error);
    memory.give_back(other);
}

TEST_F(KeptMemoryTest, a_large_block_is_not_kept_and_finds_room_too) {
    KeptMemory memory(source(), kMiB);
    most_allocated = 1;
    memory.give_back(memory.take(4096));
    void* large = memory.take(KeptMemory::kLargestBlock + 1);
    EXPECT_EQ(releases, 1) << "what was kept made room";
    EXPECT_FALSE(memory.give_back(large)) << "it is the caller's to release";
    --allocated;
    ::operator delete(large);
}

TEST_F(KeptMemoryTest, memory_of_others_is_not_taken_back) {
    KeptMemory memory(source(), kMiB);
    int other = 0;
    EXPECT_FALSE(memory.give_back(&other));
    void* block = memory.take(1);
    EXPECT_TRUE(memory.give_back(block));
    EXPECT_FALSE(memory.give_back(block)) << "twice";
}

TEST_F(KeptMemoryTest, what_has_no_holder_is_told) {
    KeptMemory memory(source(), kMiB);
    auto* block = static_cast<std::byte*>(memory.take(8192));
    EXPECT_FALSE(memory.keeps(block));
    memory.give_back(block);
    EXPECT_TRUE(memory.keeps(block) && memory.keeps(block + 8191));
    EXPECT_FALSE(memory.keeps(block + 8192) || memory.keeps(block - 1));
}

TEST_F(KeptMemoryTest, all_is_released_at_the_end) {
    {
        KeptMemory memory(source(), kMiB);
        memory.give_back(memory.take(4096));
    }
    EXPECT_EQ(allocated, 0);
}

TEST_F(KeptMemoryTest, a_block_has_one_holder_at_a_time) {
    KeptMemory memory(source(), kMiB);
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 1; t <= 4; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 2000; ++i) {
                auto* mine = static_cast<volatile int*>(memory.take(4096));
                *mine = t;
                std::this_thread::yield();
                if (*mine != t) ++wrong;
                memory.give_back(const_cast<int*>(mine));
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_LE(allocated, 4);
}

}  // namespace
}  // namespace penstock::device
