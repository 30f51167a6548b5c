// See penstock/checksum.hpp.
#include "penstock/checksum.hpp"

#include <algorithm>
#include <array>

namespace penstock {
namespace {

constexpr std::uint64_t kAdlerPrime = 65521;
constexpr std::uint32_t kCrcPolynomial = 0xEDB88320;
constexpr std::uint32_t kCrcOne = 0x80000000;  // x to the power of 0, because the bits are reflected

constexpr std::array<std::uint32_t, 256> make_table() {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
        std::uint32_t value = i;
        for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kCrcPolynomial : 0);
        table[i] = value;
    }
    return table;
}
constexpr std::array<std::uint32_t, 256> kCrcTable = make_table();

// Returns the product modulo the polynomial.
std::uint32_t multiply(std::uint32_t a, std::uint32_t b) noexcept {
    std::uint32_t product = 0;
    for (std::uint32_t bit = kCrcOne; bit != 0; bit >>= 1) {
        if ((a & bit) != 0) product ^= b;
        b = (b >> 1) ^ ((b & 1) != 0 ? kCrcPolynomial : 0);
    }
    return product;
}

// Returns x to the power of 8 * bytes: the factor of a remainder when that many bytes follow.
std::uint32_t power_of_bytes(std::uint64_t bytes) noexcept {
    std::uint32_t result = kCrcOne;
    std::uint32_t square = kCrcOne >> 8;  // x to the power of 8
    for (; bytes != 0; bytes >>= 1) {
        if ((bytes & 1) != 0) result = multiply(result, square);
        square = multiply(square, square);
    }
    return result;
}

std::uint32_t join_adler(std::span<const std::uint64_t> sums, std::uint64_t bytes) noexcept {
    std::uint64_t low = 1, high = 0;
    for (const std::uint64_t sum : sums) {
        const std::uint64_t segment = std::min(bytes, kChecksumSegment);
        high = (high + segment % kAdlerPrime * low + (sum >> 32)) % kAdlerPrime;
        low = (low + (sum & 0xFFFFFFFF)) % kAdlerPrime;
        bytes -= segment;
    }
    return static_cast<std::uint32_t>(high << 16 | low);
}

std::uint32_t join_crc(std::span<const std::uint64_t> sums, std::uint64_t bytes) noexcept {
    const std::uint32_t whole = power_of_bytes(kChecksumSegment);
    std::uint32_t crc = ~0u;
    for (const std::uint64_t sum : sums) {
        const std::uint64_t segment = std::min(bytes, kChecksumSegment);
        crc = multiply(crc, segment == kChecksumSegment ? whole : power_of_bytes(segment));
        crc ^= static_cast<std::uint32_t>(sum);
        bytes -= segment;
    }
    return ~crc;
}

}  // namespace

const char* to_string(ChecksumKind kind) noexcept { return kind == ChecksumKind::adler32 ? "adler32" : "crc32"; }

std::uint64_t checksum_segment(ChecksumKind kind, std::span<const std::byte> bytes) noexcept {
    if (kind == ChecksumKind::adler32) {
        std::uint64_t low = 0, high = 0;
        for (const std::byte byte : bytes) {
            low += static_cast<std::uint64_t>(byte);
            high = (high + low) % kAdlerPrime;
        }
        return high << 32 | low % kAdlerPrime;
    }
    std::uint32_t crc = 0;
    for (const std::byte byte : bytes) crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<std::uint32_t>(byte)) & 0xFF];
    return crc;
}

std::uint32_t join_segments(ChecksumKind kind, std::span<const std::uint64_t> sums, std::uint64_t bytes) noexcept {
    return kind == ChecksumKind::adler32 ? join_adler(sums, bytes) : join_crc(sums, bytes);
}

std::uint32_t checksum(ChecksumKind kind, std::span<const std::byte> bytes) noexcept {
    if (kind == ChecksumKind::adler32) {
        std::uint64_t low = 1, high = 0;
        for (const std::byte byte : bytes) {
            low = (low + static_cast<std::uint64_t>(byte)) % kAdlerPrime;
            high = (high + low) % kAdlerPrime;
        }
        return static_cast<std::uint32_t>(high << 16 | low);
    }
    std::uint32_t crc = ~0u;
    for (const std::byte byte : bytes) crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<std::uint32_t>(byte)) & 0xFF];
    return ~crc;
}

}  // namespace penstock
