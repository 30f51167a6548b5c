// The stamped pattern (penstock/stamp.hpp) written and checked on the CPU.
//
// Counting rule, the same on every device: a wrong whole word counts 8 bytes and is named by the word's offset; bytes
// of a word that the range cuts (its head and tail) count one by one and are named by their own offset.
#pragma once

#include <cstdint>

#include "penstock/device.hpp"

namespace penstock::device {

void stamp_on_host(void* memory, std::uint64_t bytes, std::uint64_t file_offset, std::uint64_t seed) noexcept;
StampCheck check_stamp_on_host(const void* memory, std::uint64_t bytes, std::uint64_t file_offset,
                               std::uint64_t seed) noexcept;

// How a byte range divides into the bytes before its first whole word, whole words, and bytes after the last.
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
