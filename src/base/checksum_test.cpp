// Checksums against published values, and joined segments against the sum of the whole.
#include "penstock/checksum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string_view>
#include <vector>

namespace penstock {
namespace {

std::uint32_t of(ChecksumKind kind, std::string_view text) {
    return checksum(kind, std::as_bytes(std::span(text)));
}

TEST(Checksum, is_what_the_standards_say) {
    EXPECT_EQ(of(ChecksumKind::crc32, "123456789"), 0xCBF43926u);    // the check value of CRC-32/ISO-HDLC
    EXPECT_EQ(of(ChecksumKind::adler32, "Wikipedia"), 0x11E60398u);  // the example in the encyclopaedia's article
    EXPECT_EQ(of(ChecksumKind::crc32, ""), 0u);
    EXPECT_EQ(of(ChecksumKind::adler32, ""), 1u);
}

TEST(Checksum, of_segments_joined_is_that_of_the_whole) {
    std::mt19937_64 random(1);
    for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1}, kChecksumSegment - 1, kChecksumSegment,
                                      kChecksumSegment + 1, 3 * kChecksumSegment + 12345}) {
        std::vector<std::byte> data(bytes);
        for (const bool high : {false, true}) {
            for (std::byte& byte : data) byte = high ? std::byte{0xFF} : static_cast<std::byte>(random());
            for (const ChecksumKind kind : {ChecksumKind::adler32, ChecksumKind::crc32}) {
                std::vector<std::uint64_t> sums;
                for (std::uint64_t at = 0; at < bytes; at += kChecksumSegment) {
                    const std::uint64_t length = std::min(bytes - at, kChecksumSegment);
                    sums.push_back(checksum_segment(kind, std::span(data).subspan(at, length)));
                }
                EXPECT_EQ(join_segments(kind, sums, bytes), checksum(kind, data)) << to_string(kind) << " of " << bytes;
            }
        }
    }
}

}  // namespace
}  // namespace penstock
