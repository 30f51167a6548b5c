// Numbers of any count of bits, one behind the other, the highest bit of each first: what HDF5's nbit and scaleoffset
// store.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace penstock::data {

inline constexpr std::uint64_t kBitsOfByte = 8, kBitsOfWord = 64;

// The bytes of a number in the other order.
template <class Word>
inline Word swapped(Word word) noexcept {
    if constexpr (sizeof word == 2) return __builtin_bswap16(word);
    if constexpr (sizeof word == 4) return __builtin_bswap32(word);
    if constexpr (sizeof word == 8) return __builtin_bswap64(word);
    return word;
}

class BitRow {
  public:
    explicit BitRow(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}

    // The number of `bits`, 1 to 64, that begins at bit `at`. Requires: it lies in the row.
    std::uint64_t number(std::uint64_t at, unsigned bits) const noexcept {
        const std::uint64_t byte = at / kBitsOfByte;
        const auto skip = static_cast<unsigned>(at % kBitsOfByte);
        if (byte + kReach <= bytes_.size()) return number_of(bytes_.data() + byte, skip, bits);
        std::byte window[kReach]{};
        std::memcpy(window, bytes_.data() + byte, bytes_.size() - byte);
        return number_of(window, skip, bits);
    }
    // Calls `place(i, number)` for `count` numbers from the begin on. Requires: they lie in the row.
    template <class Place>
    void each(std::uint64_t count, unsigned bits, Place place) const {
        const std::uint64_t whole =
            bytes_.size() < kReach ? 0 : ((bytes_.size() - kReach) * kBitsOfByte + 7) / bits + 1;
        const std::uint64_t fast = whole < count ? whole : count;
        for (std::uint64_t i = 0, at = 0; i < fast; ++i, at += bits) {
            place(i, number_of(bytes_.data() + at / kBitsOfByte, static_cast<unsigned>(at % kBitsOfByte), bits));
        }
        for (std::uint64_t i = fast; i < count; ++i) place(i, number(i * bits, bits));
    }

  private:
    static constexpr std::size_t kReach = 9;  // bytes that a number of 64 bits may touch

    static std::uint64_t number_of(const std::byte* from, unsigned skip, unsigned bits) noexcept {
        std::uint64_t word = 0;
        std::memcpy(&word, from, sizeof word);
        if constexpr (std::endian::native == std::endian::little) word = swapped(word);
        word <<= skip;
        if (skip + bits > kBitsOfWord) word |= std::to_integer<std::uint64_t>(from[8]) >> (kBitsOfByte - skip);
        return word >> (kBitsOfWord - bits);
    }

    std::span<const std::byte> bytes_;
};

}  // namespace penstock::data
