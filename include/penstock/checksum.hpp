// Checksums of many ranges of device memory at once: what formats store behind compressed chunks.
//
// A range is cut into segments that are summed apart, on a GPU by a warp each, and joined by arithmetic: all sums are
// linear. adler32 (RFC 1950) takes its two sums modulo 65521; crc32 (RFC 1952, polynomial 0xEDB88320, bits reflected)
// is the remainder of a polynomial, moved along by multiplication with a power of x. fletcher32, as in HDF5, sums
// big-endian words of 16 bits modulo 65535, where a multiple of 65535 other than 0 stays 65535; a last odd byte is the
// upper half of a word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "penstock/types.hpp"

namespace penstock {

enum class ChecksumKind : std::uint8_t { adler32, crc32, fletcher32 };
const char* to_string(ChecksumKind kind) noexcept;

struct ChecksumRange {
    const void* memory = nullptr;
    std::uint64_t bytes = 0;
};

constexpr std::uint64_t kChecksumSegment = 256 * kKiB;

// Of host memory, on the calling thread: what everything else must agree with. Of no bytes: 1 (adler32), 0 (others).
std::uint32_t checksum(ChecksumKind kind, std::span<const std::byte> bytes) noexcept;

// The sum of a segment. adler32: the sum of its bytes below, and above 32 bits that of each byte times the number of
// bytes from it to the end of the segment, both modulo 65521. fletcher32: the same of its words, as above. crc32: the
// remainder, from 0 and without the final xor.
std::uint64_t checksum_segment(ChecksumKind kind, std::span<const std::byte> bytes) noexcept;
// Joins the sums of a range of `bytes` that was cut into segments of kChecksumSegment, the last one shorter.
std::uint32_t join_segments(ChecksumKind kind, std::span<const std::uint64_t> sums, std::uint64_t bytes) noexcept;

}  // namespace penstock
