// Decoded chunks that are kept: found again, bounded, in the order of their last use, and by several threads at once.
#include "data/kept/kept_chunks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <numeric>
#include <thread>

#include "data/kept/chunk_places.hpp"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // each has these functions itself
namespace {

constexpr int kAllCalls = -1;
thread_local int calls_left = kAllCalls;  // that get memory, in this thread

}  // namespace

// Of this program: as the system's, but where a test says that there is no memory.
void* operator new(std::size_t bytes) {
    const bool is_refused = calls_left == 0;
    if (calls_left > 0) --calls_left;
    void* const memory = is_refused ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace penstock::data {
namespace {

DecodedChunk chunk_of(std::uint64_t bytes, int value) {
    auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
    std::memset(memory.get(), value, bytes);
    return {std::move(memory), bytes};
}

bool is_all(const DecodedChunk& chunk, int value) {
    const auto bytes = std::span(chunk.data.get(), chunk.bytes);
    return std::ranges::all_of(bytes, [&](std::byte one) { return one == static_cast<std::byte>(value); });
}

ChunkKey key_of(std::uint64_t number) { return {.kind = 3, .offset = 100 * number, .bytes = 100}; }

TEST(KeptChunks, AreFoundByAllOfTheirKey) {
    KeptChunks kept({1000, 10});
    const ChunkKey key{1, 2, 3, 4};
    kept.keep(key, chunk_of(10, 7));
    EXPECT_TRUE(is_all(kept.find(key), 7));
    EXPECT_EQ(kept.find(key).bytes, 10U);
    const std::vector<ChunkKey> others{{2, 2, 3, 4}, {1, 1, 3, 4}, {1, 2, 4, 4}, {1, 2, 3, 5}};
    for (const ChunkKey& other : others) EXPECT_EQ(kept.find(other).data, nullptr);
    kept.keep(key, chunk_of(10, 8));
    EXPECT_TRUE(is_all(kept.find(key), 7)) << "chunks of one key have the same bytes";
    EXPECT_EQ(kept.size(), 1U);
}

TEST(KeptChunks, TheLatestUsedStayWithinTheirBytes) {
    KeptChunks kept({40, 10});
    for (std::uint64_t number = 0; number < 4; ++number) kept.keep(key_of(number), chunk_of(10, 1));
    EXPECT_NE(kept.find(key_of(0)).data, nullptr);
    kept.keep(key_of(4), chunk_of(20, 1));
    const std::vector<ChunkKey> keys{key_of(0), key_of(1), key_of(2), key_of(3), key_of(4)};
    std::vector<bool> there;
    for (const DecodedChunk& one : kept.find_all(keys)) there.push_back(one.data != nullptr);
    EXPECT_EQ(there, (std::vector<bool>{true, false, false, true, true}));
    kept.keep(key_of(5), chunk_of(41, 1));
    EXPECT_EQ(kept.size(), 0U) << "it alone is more than there may be";
}

TEST(KeptChunks, TinyOnesAreBoundedByTheirNumber) {
    KeptChunks kept({1U << 20U, 8});
    for (std::uint64_t number = 0; number < 100; ++number) kept.keep(key_of(number), chunk_of(1, 1));
    EXPECT_EQ(kept.size(), 8U);
}

TEST(KeptChunks, NothingIsKeptAfterTheEnd) {
    KeptChunks kept({100, 8});
    kept.keep(key_of(1), chunk_of(10, 1));
    kept.close();
    EXPECT_EQ(kept.size(), 0U);
    EXPECT_EQ(kept.find(key_of(1)).data, nullptr);
    kept.keep(key_of(2), chunk_of(10, 1));
    EXPECT_EQ(kept.size(), 0U) << "by a read that was under way";
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(KeptChunks, AChunkThatThereIsNoMemoryToNoteIsNotKept) {
    bool is_kept = false;
    for (int calls = 0; !is_kept; ++calls) {
        KeptChunks kept({30, 10});
        for (std::uint64_t number = 1; number < 3; ++number) kept.keep(key_of(number), chunk_of(10, 1));
        DecodedChunk chunk = chunk_of(10, 1);
        calls_left = calls;
        try {
            kept.keep(key_of(3), std::move(chunk));
            is_kept = true;
        } catch (const std::bad_alloc&) {
            is_kept = false;
        }
        calls_left = kAllCalls;
        EXPECT_EQ(kept.size(), is_kept ? 3U : 2U) << calls;
        EXPECT_EQ(kept.find(key_of(3)).data != nullptr, is_kept) << calls;
        for (std::uint64_t number = 4; number < 9; ++number) kept.keep(key_of(number), chunk_of(10, 1));
        EXPECT_EQ(kept.size(), 3U) << calls;
    }
}
#endif

TEST(KeptChunks, WhatWasFoundStaysWithWhoeverFoundIt) {
    KeptChunks kept({10, 1});
    kept.keep(key_of(1), chunk_of(10, 5));
    const DecodedChunk found = kept.find(key_of(1));
    kept.keep(key_of(2), chunk_of(10, 6));
    EXPECT_EQ(kept.find(key_of(1)).data, nullptr);
    EXPECT_TRUE(is_all(found, 5));
}

TEST(KeptChunks, ThreadsFindWholeChunksOfTheirKeys) {
    KeptChunks kept({64 * 20, 1000});
    std::atomic<int> wrong = 0, found = 0;
    std::vector<std::thread> threads;
    for (std::uint64_t thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&, thread] {
            for (std::uint64_t turn = 0; turn < 4000; ++turn) {
                const std::uint64_t number = (turn * (thread + 1)) % 40;
                const DecodedChunk chunk = kept.find(key_of(number));
                if (chunk.data == nullptr) {
                    kept.keep(key_of(number), chunk_of(64, static_cast<int>(number)));
                    continue;
                }
                ++found;
                if (chunk.bytes != 64 || !is_all(chunk, static_cast<int>(number))) ++wrong;
            }
        });
    }
    for (std::thread& one : threads) one.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_GT(found, 0);
    EXPECT_LE(kept.size(), 20U);
}

using Numbers = std::vector<std::uint64_t>;

TEST(LatelyRead, RemembersBetweenAHalfAndAllOfWhatMayBeKept) {
    LatelyRead lately(10, {80, 1000});
    EXPECT_EQ(lately.again(Numbers{1, 2, 3, 4}), Numbers{});
    EXPECT_EQ(lately.again(Numbers{4, 9, 1}), (Numbers{4, 1})) << "in any order";
    EXPECT_EQ(lately.again(Numbers{11, 12, 13}), Numbers{});
    EXPECT_EQ(lately.again(Numbers{2, 11}), (Numbers{2, 11})) << "less than half of what may be kept came after it";
    EXPECT_EQ(lately.again(Numbers{14, 15}), Numbers{});
    EXPECT_EQ(lately.again(Numbers{21, 22, 23, 24, 25}), Numbers{});
    EXPECT_EQ(lately.again(Numbers{1, 3, 9, 11}), Numbers{}) << "all of what may be kept did";
}

TEST(LatelyRead, OfAChunkAsLargeAsAllThatIsKeptTheLastIsKnown) {
    LatelyRead lately(80, {80, 1000});
    EXPECT_EQ(lately.again(Numbers{1}), Numbers{});
    EXPECT_EQ(lately.again(Numbers{1}), Numbers{1});
    EXPECT_EQ(lately.again(Numbers{1}), Numbers{1});
    for (const std::uint64_t other : {2U, 3U, 4U, 1U}) EXPECT_EQ(lately.again(Numbers{other}), Numbers{});
}

TEST(LatelyRead, NumbersOfTinyChunksAreBounded) {
    LatelyRead lately(1, {1U << 20U, 1000});
    Numbers numbers(100);
    for (std::uint64_t first = 0; first < 10'000; first += 100) {
        std::iota(numbers.begin(), numbers.end(), first);
        lately.again(numbers);
    }
    EXPECT_LE(lately.size(), 1200U);
}

TEST(ChunkPlaces, AreUnknownUntilTheyArePut) {
    ChunkPlaces places(std::vector<EncodedPlace>(3));
    EXPECT_FALSE(places.at(1).is_known);
    places.put(1, {10, 20, 4, true, true});
    EXPECT_TRUE(places.at(1).is_known && places.at(1).is_stored);
    EXPECT_EQ(places.at(1).bytes, 20U);
    EXPECT_FALSE(places.at(2).is_known);
}

}  // namespace
}  // namespace penstock::data
