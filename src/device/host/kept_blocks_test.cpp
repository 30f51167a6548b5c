// Mappings that are given back serve the next holder, one at a time, and no more of them than agreed are kept.
#include "device/host/kept_blocks.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "device/host/host_memory.hpp"

namespace penstock::device {
namespace {

TEST(HostBlocks, that_were_given_back_serve_the_next_one_of_that_size) {
    HostBlocks blocks;
    const HostBlock first = blocks.take(3 * kMiB);
    std::memset(first.base, 1, first.bytes);
    blocks.give_back(first);
    EXPECT_EQ(blocks.kept_bytes(), first.bytes);
    const HostBlock smaller = blocks.take(kMiB);
    EXPECT_NE(smaller.base, first.base) << "most of it would lie idle";
    const HostBlock second = blocks.take(3 * kMiB - 100'000);
    EXPECT_EQ(second.base, first.base);
    EXPECT_EQ(second.bytes, first.bytes);
    EXPECT_EQ(blocks.kept_bytes(), 0u);
    const HostBlock other = blocks.take(3 * kMiB);
    EXPECT_NE(other.base, second.base) << "it has a holder";
    for (const HostBlock& block : {smaller, second, other}) blocks.give_back(block);
}

TEST(HostBlocks, of_one_size_serve_as_they_came_back_the_last_one_first) {
    HostBlocks blocks;
    const HostBlock first = blocks.take(kMiB), last = blocks.take(kMiB);
    blocks.give_back(first);
    blocks.give_back(last);
    const HostBlock next = blocks.take(kMiB), then = blocks.take(kMiB);
    EXPECT_EQ(next.base, last.base);
    EXPECT_EQ(then.base, first.base);
    blocks.give_back(next);
    blocks.give_back(then);
}

TEST(HostBlocks, keep_no_more_than_they_may) {
    HostBlocks blocks;
    std::vector<HostBlock> held;
    for (int count = 0; count < 3; ++count) held.push_back(blocks.take(HostBlocks::kMostKept / 2 + 4096));
    for (const HostBlock& block : held) blocks.give_back(block);
    EXPECT_EQ(blocks.kept_bytes(), HostBlocks::kMostKept / 2 + 4096);
    const HostBlock large = blocks.take(HostBlocks::kMostKept + 1);
    blocks.give_back(large);
    EXPECT_EQ(blocks.kept_bytes(), HostBlocks::kMostKept / 2 + 4096);
}

TEST(HostBlocks, of_a_size_that_is_not_asked_for_any_more_make_room_for_others) {
    HostBlocks blocks;
    blocks.give_back(blocks.take(HostBlocks::kMostKept));
    int turned_away = 0;
    for (; turned_away < 100 && blocks.kept_bytes() != kMiB; ++turned_away) blocks.give_back(blocks.take(kMiB));
    EXPECT_EQ(turned_away, 8) << "an eighth of what is kept";
}

TEST(HostBlocks, that_are_asked_for_again_and_again_stay_beside_those_that_find_no_room) {
    HostBlocks blocks;
    for (int round = 0; round < 10; ++round) {
        blocks.give_back(blocks.take(HostBlocks::kMostKept));
        for (int small = 0; small < 7; ++small) blocks.give_back(blocks.take(kMiB));
        EXPECT_EQ(blocks.kept_bytes(), HostBlocks::kMostKept) << "round " << round;
    }
}

TEST(HostBlocks, of_more_than_there_is_are_none) {
    HostBlocks blocks;
    blocks.give_back(blocks.take(kMiB));
    EXPECT_EQ(blocks.take(UINT64_MAX).base, nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(blocks.kept_bytes(), 0u) << "what was kept was given up for it";
}

TEST(HostMemory, of_the_device_is_used_again_and_that_of_other_kinds_is_new) {
    HostMemory memory(0);
    for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned}) {
        auto* const first = static_cast<std::byte*>(memory.allocate(kind, kMiB));
        first[kMiB - 1] = std::byte{7};
        const std::uint64_t free = memory.free_bytes();
        memory.release(first);
        EXPECT_EQ(memory.free_bytes() - free, kind == MemoryKind::device ? kMiB : 0);
        EXPECT_EQ(memory.find(first), nullptr) << "what is kept is no memory of the device";
        auto* const second = static_cast<std::byte*>(memory.allocate(kind, kMiB));
        EXPECT_EQ(second[kMiB - 1], kind == MemoryKind::device ? std::byte{7} : std::byte{0});
        memory.release(second);
    }
}

TEST(HostMemory, that_someone_still_holds_is_not_given_to_the_next) {
    HostMemory memory(0);
    void* const first = memory.allocate(MemoryKind::device, kMiB);
    const auto held = memory.find(first);
    memory.release(first);
    void* const second = memory.allocate(MemoryKind::device, kMiB);
    EXPECT_NE(second, first);
    memory.release(second);
}

}  // namespace
}  // namespace penstock::device
