// See penstock/checksum.hpp.
#include "penstock/checksum.hpp"

#include <algorithm>
#include <array>

namespace penstock {
namespace {

constexpr std::uint64_t kAdlerPrime = 65521;
constexpr std::uint64_t kFletcherModulus = 65535;
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

// Modulo 65535, but of what is not 0 never 0.
std::uint64_t folded(std::uint64_t sum) noexcept { return sum == 0 ? 0 : (sum - 1) % kFletcherModulus + 1; }

// Returns the sum of words below, and that of its steps above 32 bits.
std::uint64_t sum_words(std::span<const std::byte> bytes) noexcept {
    std::uint64_t low = 0, high = 0;
    for (std::size_t i = 0; i < bytes.size(); i += 2) {
        low += static_cast<std::uint64_t>(bytes[i]) << 8;
        if (i + 1 < bytes.size()) low += static_cast<std::uint64_t>(bytes[i + 1]);
        low = folded(low);
        high = folded(high + low);
    }
    return high << 32 | low;
}

std::uint32_t join_fletcher(std::span<const std::uint64_t> sums, std::uint64_t bytes) noexcept {
    std::uint64_t low = 0, high = 0;
    for (const std::uint64_t sum : sums) {
        const std::uint64_t segment = std::min(bytes, kChecksumSegment);
        high = folded(high + (segment + 1) / 2 * low + (sum >> 32));
        low = folded(low + (sum & 0xFFFFFFFF));
        bytes -= segment;
    }
    return static_cast<std::uint32_t>(high << 16 | low);
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

const char* to_string(ChecksumKind kind) noexcept {
    switch (kind) {
        case ChecksumKind::adler32: return "adler32";
        case ChecksumKind::crc32: return "crc32";
        case ChecksumKind::fletcher32: return "fletcher32";
    }
    return "?";
}

std::uint64_t checksum_segment(ChecksumKind kind, std::span<const std::byte> bytes) noexcept {
    if (kind == ChecksumKind::adler32) {
        std::uint64_t low = 0, high = 0;
        for (const std::byte byte : bytes) {
            low += static_cast<std::uint64_t>(byte);
            high = (high + low) % kAdlerPrime;
        }
        return high << 32 | low % kAdlerPrime;
    }
    if (kind == ChecksumKind::fletcher32) return sum_words(bytes);
    std::uint32_t crc = 0;
    for (const std::byte byte : bytes) crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<std::uint32_t>(byte)) & 0xFF];
    return crc;
}

std::uint32_t join_segments(ChecksumKind kind, std::span<const std::uint64_t> sums, std::uint64_t bytes) noexcept {
    if (kind == ChecksumKind::fletcher32) return join_fletcher(sums, bytes);
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
    if (kind == ChecksumKind::fletcher32) {
        const std::uint64_t sums = sum_words(bytes);
        return static_cast<std::uint32_t>(sums >> 32 << 16 | (sums & 0xFFFF));
    }
    std::uint32_t crc = ~0u;
    for (const std::byte byte : bytes) crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<std::uint32_t>(byte)) & 0xFF];
    return ~crc;
}

}  // namespace penstock
