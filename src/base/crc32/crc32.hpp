// CRC-32 as arithmetic (RFC 1952: polynomial 0xEDB88320, bits reflected), on bytes of the host.
//
// Sums are remainders of polynomials, without the inversions of the standard's, so they are linear: the remainder of a
// block is the exclusive or of those of its parts, each followed by as many zeros as bytes come after the part. Parts
// may therefore be summed by whoever has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::base {

// Of these bytes behind others that have the remainder `before`.
std::uint32_t crc32_remainder(std::uint32_t before, std::span<const std::byte> bytes) noexcept;
// Of what has this remainder, followed by so many zeros.
std::uint32_t crc32_followed(std::uint32_t remainder, std::uint64_t zeros) noexcept;

// The standard's sum of `bytes` bytes with this remainder, and back.
std::uint32_t crc32_of_remainder(std::uint32_t remainder, std::uint64_t bytes) noexcept;
inline std::uint32_t crc32_to_remainder(std::uint32_t crc, std::uint64_t bytes) noexcept {
    return crc32_of_remainder(crc, bytes);  // the inversions undo themselves
}

}  // namespace penstock::base
