// See crc32.hpp. Where the CPU folds, 16 bytes are left to sum; else eight bytes are taken at a time, by tables.
#include "base/crc32/crc32.hpp"

#include <array>

#include "base/crc32/folding.hpp"

namespace penstock::base {
namespace {

constexpr std::uint32_t kCrcPolynomial = 0xEDB88320;
constexpr std::uint32_t kCrcOne = 0x80000000;  // x to the power of 0, because the bits are reflected
using CrcTables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr CrcTables make_crc_tables() {
    CrcTables tables{};
    for (std::uint32_t i = 0; i < 256; ++i) {
        std::uint32_t value = i;
        for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kCrcPolynomial : 0);
        tables[0][i] = value;
    }
    for (std::size_t k = 1; k < tables.size(); ++k) {
        for (std::size_t i = 0; i < 256; ++i) tables[k][i] = tables[k - 1][i] >> 8 ^ tables[0][tables[k - 1][i] & 0xFF];
    }
    return tables;
}
constexpr CrcTables kCrcTables = make_crc_tables();

std::uint32_t word_at(std::span<const std::byte> bytes, std::size_t at) noexcept {
    std::uint32_t word = 0;
    for (unsigned i = 0; i < 4; ++i) word |= std::to_integer<std::uint32_t>(bytes[at + i]) << (8 * i);
    return word;
}

std::uint32_t by_tables(std::uint32_t crc, std::span<const std::byte> bytes) noexcept {
    for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
        const std::uint32_t low = word_at(bytes, 0) ^ crc, high = word_at(bytes, 4);
        crc = kCrcTables[7][low & 0xFF] ^ kCrcTables[6][low >> 8 & 0xFF] ^ kCrcTables[5][low >> 16 & 0xFF] ^
              kCrcTables[4][low >> 24] ^ kCrcTables[3][high & 0xFF] ^ kCrcTables[2][high >> 8 & 0xFF] ^
              kCrcTables[1][high >> 16 & 0xFF] ^ kCrcTables[0][high >> 24];
    }
    for (const std::byte one : bytes)
        crc = crc >> 8 ^ kCrcTables[0][(crc ^ std::to_integer<std::uint32_t>(one)) & 0xFF];
    return crc;
}

// Returns the product modulo the polynomial.
std::uint32_t multiply(std::uint32_t a, std::uint32_t b) noexcept {
    std::uint32_t product = 0;
    for (std::uint32_t bit = kCrcOne; bit != 0; bit >>= 1) {
        if ((a & bit) != 0) product ^= b;
        b = (b >> 1) ^ ((b & 1) != 0 ? kCrcPolynomial : 0);
    }
    return product;
}

}  // namespace

std::uint32_t crc32_remainder(std::uint32_t before, std::span<const std::byte> bytes) noexcept {
    if (bytes.size() < kLeastToFold || !can_fold()) return by_tables(before, bytes);
    const std::size_t whole = bytes.size() / kFoldedBytes * kFoldedBytes;
    std::array<std::byte, kFoldedBytes> folded{};
    fold(before, bytes.first(whole), folded);
    return by_tables(by_tables(0, folded), bytes.subspan(whole));
}

// The factor is x to the power of 8 * zeros.
std::uint32_t crc32_followed(std::uint32_t remainder, std::uint64_t zeros) noexcept {
    std::uint32_t square = kCrcOne >> 8;
    for (; zeros != 0 && remainder != 0; zeros >>= 1) {
        if ((zeros & 1) != 0) remainder = multiply(remainder, square);
        square = multiply(square, square);
    }
    return remainder;
}

std::uint32_t crc32_of_remainder(std::uint32_t remainder, std::uint64_t bytes) noexcept {
    return ~(remainder ^ crc32_followed(~std::uint32_t{0}, bytes));
}

}  // namespace penstock::base
