// Checksums against published values, and joined segments against the sum of the whole.
#include "penstock/checksum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
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
    EXPECT_EQ(of(ChecksumKind::fletcher32, ""), 0u);
}

// What HDF5 stored behind chunks of these bytes.
TEST(Checksum, fletcher32_is_what_hdf5_stores) {
    EXPECT_EQ(of(ChecksumKind::fletcher32, "123456789"), 0x09DF09D5u);
    EXPECT_EQ(of(ChecksumKind::fletcher32, "abcdef"), 0x50562A2Du);
    EXPECT_EQ(of(ChecksumKind::fletcher32, std::string(100, '\0')), 0u);
    EXPECT_EQ(of(ChecksumKind::fletcher32, std::string(4000, '\xFF')), 0xFFFFFFFFu) << "a multiple of 65535 is not 0";
    std::string counting(100'001, ' ');
    for (std::size_t i = 0; i < counting.size(); ++i) counting[i] = static_cast<char>(i * 7 % 251);
    EXPECT_EQ(of(ChecksumKind::fletcher32, counting), 0xA02663F4u);
}

TEST(Checksum, of_segments_joined_is_that_of_the_whole) {
    std::mt19937_64 random(1);
    for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1}, kChecksumSegment - 1, kChecksumSegment,
                                      kChecksumSegment + 1, 3 * kChecksumSegment + 12345}) {
        std::vector<std::byte> data(bytes);
        for (const int every : {-1, 0xFF, 0}) {
            for (std::byte& byte : data) {
                byte = static_cast<std::byte>(every < 0 ? static_cast<int>(random() % 256) : every);
            }
            for (const ChecksumKind kind : {ChecksumKind::adler32, ChecksumKind::crc32, ChecksumKind::fletcher32}) {
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
