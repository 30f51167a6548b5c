// Runs the lanes of a checksum one after the other and compares them with plain loops. The kernels around them
// (kernels_checksum, cuda_checksum) run in the device kit, on a GPU.
#include "device/checksum_lanes.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "penstock/checksum.hpp"

namespace penstock::device {
namespace {

std::uint64_t played(ChecksumKind kind, const CrcTables& tables, const ChecksumSegment& segment) {
    if (kind != ChecksumKind::crc32) {
        const bool adler = kind == ChecksumKind::adler32;
        TwoSums all;
        for (unsigned lane = 0; lane < kChecksumLanes; ++lane) {
            const TwoSums one = adler ? adler_of_lane(segment, lane) : fletcher_of_lane(segment, lane);
            all.low += one.low;
            all.high += one.high;
        }
        return adler ? adler_segment(all) : fletcher_segment(all);
    }
    std::uint32_t crc = 0;
    for (unsigned lane = 0; lane < kChecksumLanes && segment.bytes >= kRowBytes; ++lane) {
        crc = add_lane(tables, crc, crc_of_lane(tables, segment, lane));
    }
    return add_crc_tail(tables, segment, crc);
}

TEST(ChecksumLanes, sum_segments_of_any_size_at_any_alignment) {
    const auto tables = std::make_unique<CrcTables>();
    for (unsigned i = 0; i < 256; ++i) fill_by_word(*tables, i);
    for (unsigned i = 0; i < 256; ++i) fill_by_row(*tables, i);
    std::mt19937_64 random(2);
    std::vector<unsigned char> data(kChecksumSegment + 8);
    for (const int every : {-1, 0xFF, 0}) {
        for (unsigned char& byte : data) {
            byte = static_cast<unsigned char>(every < 0 ? static_cast<int>(random() % 256) : every);
        }
        for (const std::uint64_t bytes : {0ull, 1ull, 3ull, 127ull, 128ull, 129ull, 255ull, 256ull, 4096ull, 70001ull,
                                          static_cast<unsigned long long>(kChecksumSegment)}) {
            for (unsigned shift = 0; shift < 5; ++shift) {
                const ChecksumSegment segment{data.data() + shift, bytes};
                const auto plain = std::as_bytes(std::span(data)).subspan(shift, bytes);
                for (const ChecksumKind kind : {ChecksumKind::adler32, ChecksumKind::crc32, ChecksumKind::fletcher32}) {
                    EXPECT_EQ(played(kind, *tables, segment), checksum_segment(kind, plain))
                        << to_string(kind) << " of " << bytes << " at " << shift;
                }
            }
        }
    }
}

}  // namespace
}  // namespace penstock::device
