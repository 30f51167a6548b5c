// Stamps on the CPU against their definition, byte by byte. The stamps of every device are compared with these.
#include "device/host/stamp_host.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "penstock/stamp.hpp"

namespace penstock::device {
namespace {

TEST(StampHost, a_split_covers_the_range_and_words_lie_on_word_boundaries) {
    for (std::uint64_t offset = 0; offset < 17; ++offset) {
        for (std::uint64_t bytes = 0; bytes < 40; ++bytes) {
            const StampSplit split = split_stamp(bytes, offset);
            EXPECT_EQ(split.head_bytes + 8 * split.words + split.tail_bytes, bytes);
            EXPECT_LT(split.head_bytes, 8u);
            EXPECT_LT(split.tail_bytes, 8u);
            if (split.words == 0) continue;
            EXPECT_EQ(8 * split.first_word, offset + split.head_bytes);
        }
    }
}

TEST(StampHost, stamps_are_the_pattern_and_touch_nothing_beside_it) {
    for (std::uint64_t offset = 0; offset < 17; ++offset) {
        for (std::uint64_t bytes = 0; bytes < 40; ++bytes) {
            std::vector<unsigned char> memory(64, 0xA5), expected(64, 0xA5);
            for (std::uint64_t i = 0; i < bytes; ++i) expected[3 + i] = stamp_byte(7, offset + i);
            stamp_on_host(memory.data() + 3, bytes, offset, 7);
            EXPECT_EQ(memory, expected) << bytes << "@" << offset;
            EXPECT_EQ(check_stamp_on_host(memory.data() + 3, bytes, offset, 7).bad_bytes, 0u);
        }
    }
}

TEST(StampHost, every_wrong_byte_is_found) {
    constexpr std::uint64_t kBytes = 37, kOffset = 5;
    for (std::uint64_t at = 0; at < kBytes; ++at) {
        std::vector<unsigned char> memory(kBytes);
        stamp_on_host(memory.data(), kBytes, kOffset, 7);
        memory[at] ^= 0x80;
        const StampCheck check = check_stamp_on_host(memory.data(), kBytes, kOffset, 7);
        const std::uint64_t word = align_down(kOffset + at, 8);
        const bool whole = word >= kOffset && word + 8 <= kOffset + kBytes;
        EXPECT_EQ(check.bad_bytes, whole ? 8u : 1u) << at;
        EXPECT_EQ(check.first_bad_offset, whole ? word : kOffset + at) << at;
    }
}

}  // namespace
}  // namespace penstock::device
