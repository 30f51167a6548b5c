// The stamped pattern (penstock/stamp.hpp), written and checked on the CPU.
//
// All devices count in the same way. A wrong whole word counts as 8 bytes and is reported by the word's offset. Bytes
// of a word that the range cuts, at its head or tail, count one by one and are reported by their own offsets.
#pragma once

#include <cstdint>

#include "penstock/device.hpp"

namespace penstock::device {

void stamp_on_host(void* memory, std::uint64_t bytes, std::uint64_t file_offset, std::uint64_t seed) noexcept;
StampCheck check_stamp_on_host(const void* memory, std::uint64_t bytes, std::uint64_t file_offset,
                               std::uint64_t seed) noexcept;

// Splits a byte range into the bytes before its first whole word, its whole words, and the bytes after the last one.
struct StampSplit {
    std::uint64_t head_bytes = 0;
    std::uint64_t words = 0;
    std::uint64_t tail_bytes = 0;
    std::uint64_t first_word = 0;  // word index in the file
};
constexpr StampSplit split_stamp(std::uint64_t bytes, std::uint64_t file_offset) noexcept {
    StampSplit split;
    const std::uint64_t to_word = (8 - file_offset % 8) % 8;
    split.head_bytes = to_word < bytes ? to_word : bytes;
    split.words = (bytes - split.head_bytes) / 8;
    split.tail_bytes = (bytes - split.head_bytes) % 8;
    split.first_word = (file_offset + split.head_bytes) / 8;
    return split;
}

}  // namespace penstock::device
