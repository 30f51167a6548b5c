// CRC-32 of every length and beginning against the definition, bit by bit, and sums joined from parts in any order.
// Tried with them: folding_x86.cpp, folding_absent.cpp.
#include "base/crc32/crc32.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/crc32/folding.hpp"
#include "penstock/checksum.hpp"

namespace penstock::base {
namespace {

std::uint32_t by_definition(std::uint32_t before, std::span<const std::byte> bytes) {
    for (const std::byte one : bytes) {
        before ^= std::to_integer<std::uint32_t>(one);
        for (int bit = 0; bit < 8; ++bit) before = before >> 1 ^ ((before & 1) != 0 ? 0xEDB88320 : 0);
    }
    return before;
}

std::vector<std::byte> random_bytes(std::size_t count) {
    std::mt19937 random(count);
    std::vector<std::byte> made(count);
    for (std::byte& one : made) one = static_cast<std::byte>(random());
    return made;
}

TEST(Crc32, of_any_length_is_the_remainder_of_a_polynomial) {
    const std::vector<std::byte> bytes = random_bytes(700);
    for (std::size_t length = 0; length < 600; ++length) {
        const auto part = std::span(bytes).subspan(length % 17, length);
        const auto before = static_cast<std::uint32_t>(length * 2654435761);
        ASSERT_EQ(crc32_remainder(before, part), by_definition(before, part)) << length;
    }
}

TEST(Crc32, of_a_block_is_joined_from_those_of_its_parts) {
    const std::vector<std::byte> bytes = random_bytes(100'000);
    const std::size_t ends[] = {0, 1, 5, 70, 4096, 65'537, 99'999, 100'000};
    std::uint32_t joined = 0;
    for (std::size_t i = 7; i > 0; --i) {
        const auto part = std::span(bytes).subspan(ends[i - 1], ends[i] - ends[i - 1]);
        const std::uint32_t own = crc32_to_remainder(checksum(ChecksumKind::crc32, part), part.size());
        EXPECT_EQ(own, crc32_remainder(0, part));
        joined ^= crc32_followed(own, bytes.size() - ends[i]);
    }
    EXPECT_EQ(crc32_of_remainder(joined, bytes.size()), checksum(ChecksumKind::crc32, bytes));
}

TEST(Crc32, is_folded_by_this_machine_if_its_cpu_can) {
#ifdef __x86_64__
    EXPECT_EQ(can_fold(), __builtin_cpu_supports("pclmul") != 0);
#else
    EXPECT_FALSE(can_fold());
#endif
}

}  // namespace
}  // namespace penstock::base
