// How the lanes of a warp sum a segment: the body of the kernel, as functions of one lane that use no CUDA.
//
// The GPU compiles this source, and so does checksum_lanes_test, which runs the lanes one after the other on the CPU. A
// segment consists of rows of 32 words of 4 bytes, one word for each lane, and a tail shorter than a row. From row to
// row a lane multiplies its crc by x to the power of 1024 (the bits of a row). That is linear, so four look-ups
// suffice.
#pragma once

#include <cstdint>
#include <cstring>

#include "penstock/stamp.hpp"

namespace penstock::device {

constexpr unsigned kChecksumLanes = 32;
constexpr unsigned kRowBytes = kChecksumLanes * 4;
constexpr std::uint64_t kAdlerModulus = 65521, kWordModulus = 65535;

// A segment in the form that a kernel reads.
struct ChecksumSegment {
    const unsigned char* memory;
    std::uint64_t bytes;
};

// Table entries: the crc of a byte after 32 more zero bits (by_word) or 1024 more (by_row).
struct CrcTables {
    std::uint32_t by_word[4][256];
    std::uint32_t by_row[4][256];
};

PENSTOCK_HOST_DEVICE inline std::uint32_t crc_step(const std::uint32_t (&tables)[4][256], std::uint32_t crc) {
    return tables[0][crc & 0xFF] ^ tables[1][crc >> 8 & 0xFF] ^ tables[2][crc >> 16 & 0xFF] ^ tables[3][crc >> 24];
}

// Fills entry `i` of all tables of one kind. Requires for by_row: all entries of by_word are filled.
PENSTOCK_HOST_DEVICE inline void fill_by_word(CrcTables& tables, unsigned i) {
    std::uint32_t value = i;
    for (unsigned byte = 0; byte < 4; ++byte) {
        for (unsigned bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0xEDB88320u : 0);
        tables.by_word[3 - byte][i] = value;
    }
}
PENSTOCK_HOST_DEVICE inline void fill_by_row(CrcTables& tables, unsigned i) {
    for (unsigned byte = 0; byte < 4; ++byte) {
        std::uint32_t value = i << (8 * byte);
        for (unsigned word = 0; word < kChecksumLanes; ++word) value = crc_step(tables.by_word, value);
        tables.by_row[byte][i] = value;
    }
}

PENSTOCK_HOST_DEVICE inline std::uint32_t word_at(const unsigned char* memory) {
    if (reinterpret_cast<std::uintptr_t>(memory) % 4 == 0) {
        std::uint32_t word;
        std::memcpy(&word, __builtin_assume_aligned(memory, 4), 4);
        return word;
    }
    return memory[0] | static_cast<std::uint32_t>(memory[1]) << 8 | static_cast<std::uint32_t>(memory[2]) << 16 |
           static_cast<std::uint32_t>(memory[3]) << 24;
}

PENSTOCK_HOST_DEVICE inline std::uint32_t crc_of_lane(const CrcTables& tables, const ChecksumSegment& segment,
                                                      unsigned lane) {
    std::uint32_t crc = 0;
    const std::uint64_t rows = segment.bytes / kRowBytes;
    const unsigned char* at = segment.memory + 4 * lane;
    for (std::uint64_t row = 0; row < rows; ++row, at += kRowBytes) {
        if (row != 0) crc = crc_step(tables.by_row, crc);
        crc ^= word_at(at);
    }
    return crc;
}

// Joins the words of the lanes in order: each step shifts the sum by 32 bits.
PENSTOCK_HOST_DEVICE inline std::uint32_t add_lane(const CrcTables& tables, std::uint32_t crc, std::uint32_t of_lane) {
    return crc_step(tables.by_word, crc ^ of_lane);
}

PENSTOCK_HOST_DEVICE inline std::uint32_t add_crc_tail(const CrcTables& tables, const ChecksumSegment& segment,
                                                       std::uint32_t crc) {
    for (std::uint64_t i = segment.bytes / kRowBytes * kRowBytes; i < segment.bytes; ++i) {
        crc = (crc >> 8) ^ tables.by_word[3][(crc ^ segment.memory[i]) & 0xFF];
    }
    return crc;
}

// Sums over a lane's bytes: of the values, and of each value times the number of bytes from it to the end. They cannot
// overflow in 256 KiB.
struct TwoSums {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
};

PENSTOCK_HOST_DEVICE inline TwoSums adler_of_lane(const ChecksumSegment& segment, unsigned lane) {
    TwoSums sums;
    const std::uint64_t rows = segment.bytes / kRowBytes;
    std::uint64_t to_end = segment.bytes - 4 * lane;
    const unsigned char* at = segment.memory + 4 * lane;
    for (std::uint64_t row = 0; row < rows; ++row, at += kRowBytes, to_end -= kRowBytes) {
        const std::uint32_t word = word_at(at);
        const std::uint32_t b1 = word >> 8 & 0xFF, b2 = word >> 16 & 0xFF, b3 = word >> 24;
        const std::uint32_t sum = (word & 0xFF) + b1 + b2 + b3;
        sums.low += sum;
        sums.high += to_end * sum - (b1 + 2 * b2 + 3 * b3);
    }
    for (std::uint64_t i = rows * kRowBytes + lane; i < segment.bytes; i += kChecksumLanes) {
        sums.low += segment.memory[i];
        sums.high += (segment.bytes - i) * segment.memory[i];
    }
    return sums;
}

PENSTOCK_HOST_DEVICE inline std::uint64_t adler_segment(const TwoSums& sums) {
    return (sums.high % kAdlerModulus) << 32 | sums.low % kAdlerModulus;
}

// The same sums of big-endian words of 16 bits. A last odd byte is the upper half of a word.
PENSTOCK_HOST_DEVICE inline TwoSums fletcher_of_lane(const ChecksumSegment& segment, unsigned lane) {
    TwoSums sums;
    const std::uint64_t rows = segment.bytes / kRowBytes, words = (segment.bytes + 1) / 2;
    std::uint64_t to_end = words - 2 * lane;
    const unsigned char* at = segment.memory + 4 * lane;
    for (std::uint64_t row = 0; row < rows; ++row, at += kRowBytes, to_end -= kRowBytes / 2) {
        const std::uint32_t four = word_at(at);
        const std::uint32_t first = (four & 0xFF) << 8 | (four >> 8 & 0xFF);
        const std::uint32_t second = (four >> 16 & 0xFF) << 8 | four >> 24;
        sums.low += first + second;
        sums.high += to_end * first + (to_end - 1) * second;
    }
    for (std::uint64_t i = rows * kRowBytes + 2 * lane; i < segment.bytes; i += 2 * kChecksumLanes) {
        std::uint64_t word = static_cast<std::uint64_t>(segment.memory[i]) << 8;
        if (i + 1 < segment.bytes) word |= segment.memory[i + 1];
        sums.low += word;
        sums.high += (words - i / 2) * word;
    }
    return sums;
}

// A sum other than 0 stays so.
PENSTOCK_HOST_DEVICE inline std::uint64_t fletcher_folded(std::uint64_t sum) {
    return sum == 0 ? 0 : (sum - 1) % kWordModulus + 1;
}
PENSTOCK_HOST_DEVICE inline std::uint64_t fletcher_segment(const TwoSums& sums) {
    return fletcher_folded(sums.high) << 32 | fletcher_folded(sums.low);
}

}  // namespace penstock::device
