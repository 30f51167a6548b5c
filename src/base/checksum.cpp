// See penstock/checksum.hpp.
#include "penstock/checksum.hpp"

#include <algorithm>
#include <array>

#include "base/crc32/crc32.hpp"

namespace penstock {
namespace {

constexpr std::uint64_t kAdlerPrime = 65521;
constexpr std::uint64_t kFletcherModulus = 65535;

constexpr std::size_t kAdlerColumns = 32;
constexpr std::size_t kAdlerRows = 256;  // after so many a sum of sums must be taken, or it overflows 32 bits

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

// Adler's checksum, in columns, which do not wait for each other.
// Column j has the sum of its bytes in `sums`, and in `sums_before` the sum of what that was before each row; the upper
// sum follows from both.
std::uint32_t sum_columns(std::span<const std::byte> data) noexcept {
    const auto* at = reinterpret_cast<const std::uint8_t*>(data.data());
    std::uint64_t low = 1, high = 0;
    std::size_t rows = data.size() / kAdlerColumns;
    while (rows != 0) {
        const std::size_t some = std::min(rows, kAdlerRows);
        rows -= some;
        std::array<std::uint32_t, kAdlerColumns> sums{}, sums_before{};
        for (std::size_t row = 0; row < some; ++row, at += kAdlerColumns) {
            for (std::size_t j = 0; j < kAdlerColumns; ++j) {
                sums_before[j] += sums[j];
                sums[j] += at[j];
            }
        }
        high += some * kAdlerColumns * low;
        for (std::size_t j = 0; j < kAdlerColumns; ++j) {
            high += kAdlerColumns * std::uint64_t{sums_before[j]} + (kAdlerColumns - j) * std::uint64_t{sums[j]};
            low += sums[j];
        }
        low %= kAdlerPrime;
        high %= kAdlerPrime;
    }
    const auto* end = reinterpret_cast<const std::uint8_t*>(data.data()) + data.size();
    for (; at < end; ++at) {
        low += *at;
        high += low;
    }
    return static_cast<std::uint32_t>((high % kAdlerPrime) << 16 | low % kAdlerPrime);
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
    std::uint32_t crc = ~0u;
    for (const std::uint64_t sum : sums) {
        const std::uint64_t segment = std::min(bytes, kChecksumSegment);
        crc = base::crc32_followed(crc, segment) ^ static_cast<std::uint32_t>(sum);
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
    return base::crc32_remainder(0, bytes);
}

std::uint32_t join_segments(ChecksumKind kind, std::span<const std::uint64_t> sums, std::uint64_t bytes) noexcept {
    if (kind == ChecksumKind::fletcher32) return join_fletcher(sums, bytes);
    return kind == ChecksumKind::adler32 ? join_adler(sums, bytes) : join_crc(sums, bytes);
}

std::uint32_t checksum(ChecksumKind kind, std::span<const std::byte> bytes) noexcept {
    if (kind == ChecksumKind::adler32) return sum_columns(bytes);
    if (kind == ChecksumKind::fletcher32) {
        const std::uint64_t sums = sum_words(bytes);
        return static_cast<std::uint32_t>(sums >> 32 << 16 | (sums & 0xFFFF));
    }
    return ~base::crc32_remainder(~0u, bytes);
}

}  // namespace penstock
