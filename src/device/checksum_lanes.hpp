// How the lanes of a warp sum a segment: the body of the kernel, as functions of one lane that know no CUDA.
//
// Single source for the GPU and for checksum_lanes_test, which plays the lanes one after the other on the CPU. A
// segment is rows of 32 words of 4 bytes, a word for each lane, and a tail that is shorter than a row. A lane's crc
// goes from row to row by multiplication with x to the power of 1024 (the bits of a row), which is linear, hence four
// look-ups.
#pragma once

#include <cstdint>
#include <cstring>

#include "penstock/stamp.hpp"

namespace penstock::device {

constexpr unsigned kChecksumLanes = 32;
constexpr unsigned kRowBytes = kChecksumLanes * 4;
constexpr std::uint64_t kAdlerModulus = 65521;

// A segment as a kernel reads it.
struct ChecksumSegment {
    const unsigned char* memory;
    std::uint64_t bytes;
};

// What four bytes of a remainder become when 32 bits (by_word) or 1024 bits (by_row) follow.
struct CrcTables {
    std::uint32_t by_word[4][256];
    std::uint32_t by_row[4][256];
};

PENSTOCK_HOST_DEVICE inline std::uint32_t crc_step(const std::uint32_t (&tables)[4][256], std::uint32_t crc) {
    return tables[0][crc & 0xFF] ^ tables[1][crc >> 8 & 0xFF] ^ tables[2][crc >> 16 & 0xFF] ^ tables[3][crc >> 24];
}

// Entry `i` of all tables of a kind; by_word before by_row, for all i of the one before any of the other.
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

// Behind the lanes' words, one after the other: each moves what came before by its 32 bits.
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

// Sums of a lane's bytes, plain and times the number of bytes from each to the end. No overflow in 256 KiB.
struct AdlerSums {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
};

PENSTOCK_HOST_DEVICE inline AdlerSums adler_of_lane(const ChecksumSegment& segment, unsigned lane) {
    AdlerSums sums;
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

PENSTOCK_HOST_DEVICE inline std::uint64_t adler_segment(const AdlerSums& sums) {
    return (sums.high % kAdlerModulus) << 32 | sums.low % kAdlerModulus;
}

}  // namespace penstock::device
