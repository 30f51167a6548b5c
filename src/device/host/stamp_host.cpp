// See stamp_host.hpp. Words are little-endian on every host.
#include "device/host/stamp_host.hpp"

#include <bit>
#include <cstring>
#include <span>

#include "penstock/stamp.hpp"

namespace penstock::device {
namespace {

std::uint64_t little_endian(std::uint64_t word) noexcept {
    if constexpr (std::endian::native == std::endian::big) return __builtin_bswap64(word);
    return word;
}

void stamp_bytes(unsigned char* memory, std::uint64_t bytes, std::uint64_t offset, std::uint64_t seed) noexcept {
    for (std::uint64_t i = 0; i < bytes; ++i) memory[i] = stamp_byte(seed, offset + i);
}

void count_bad(StampCheck& check, std::uint64_t bytes, std::uint64_t offset) noexcept {
    if (check.bad_bytes == 0) check.first_bad_offset = offset;
    check.bad_bytes += bytes;
}

void check_bytes(StampCheck& check, std::span<const unsigned char> memory, std::uint64_t offset,
                 std::uint64_t seed) noexcept {
    for (std::uint64_t i = 0; i < memory.size(); ++i) {
        if (memory[i] != stamp_byte(seed, offset + i)) count_bad(check, 1, offset + i);
    }
}

}  // namespace

void stamp_on_host(void* memory, std::uint64_t bytes, std::uint64_t file_offset, std::uint64_t seed) noexcept {
    const StampSplit split = split_stamp(bytes, file_offset);
    auto* at = static_cast<unsigned char*>(memory);
    stamp_bytes(at, split.head_bytes, file_offset, seed);
    at += split.head_bytes;
    for (std::uint64_t i = 0; i < split.words; ++i, at += 8) {
        const std::uint64_t word = little_endian(stamp_word(seed, split.first_word + i));
        std::memcpy(at, &word, 8);
    }
    stamp_bytes(at, split.tail_bytes, file_offset + bytes - split.tail_bytes, seed);
}

StampCheck check_stamp_on_host(const void* memory, std::uint64_t bytes, std::uint64_t file_offset,
                               std::uint64_t seed) noexcept {
    const StampSplit split = split_stamp(bytes, file_offset);
    const auto* at = static_cast<const unsigned char*>(memory);
    StampCheck check;
    check_bytes(check, {at, split.head_bytes}, file_offset, seed);
    at += split.head_bytes;
    for (std::uint64_t i = 0; i < split.words; ++i, at += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, at, 8);
        if (little_endian(word) != stamp_word(seed, split.first_word + i))
            count_bad(check, 8, 8 * (split.first_word + i));
    }
    check_bytes(check, {at, split.tail_bytes}, file_offset + bytes - split.tail_bytes, seed);
    return check;
}

}  // namespace penstock::device
