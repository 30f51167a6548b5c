// See stored_prefix.hpp.
#include "data/encode/codecs/stored_prefix.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace penstock::data {
namespace {

constexpr std::size_t kNoiseBlock = std::size_t{32} << 10;  // the window of deflate: no match reaches further back
constexpr std::size_t kAskedOf = 16;                   // the library is asked about one block of so many
constexpr std::size_t kMostInBlock = 65535;             // bytes of one stored block
constexpr std::size_t kStoredHeader = 5;
constexpr double kNoiseBits = 7.95;  // of a byte, by the counts of its values: a code saves less than a hundredth

double bits_of_a_byte(std::span<const std::byte> block) {
    std::array<std::array<std::uint32_t, 256>, 2> counts{};
    std::size_t i = 0;
    for (; i + 2 <= block.size(); i += 2) {
        ++counts[0][std::to_integer<std::size_t>(block[i])];
        ++counts[1][std::to_integer<std::size_t>(block[i + 1])];
    }
    double sum = 0;
    const auto all = static_cast<double>(i);
    for (std::size_t value = 0; value < 256; ++value) {
        const double count = counts[0][value] + counts[1][value];
        if (count > 0) sum -= count * std::log2(count / all);
    }
    return sum / all;
}

}  // namespace

std::size_t stored_prefix(std::span<const std::byte> plain,
                          const std::function<std::size_t(std::span<const std::byte>)>& shrunk) {
    std::size_t at = 0;
    for (std::size_t number = 0; at + 2 * kNoiseBlock < plain.size(); ++number, at += kNoiseBlock) {
        if (bits_of_a_byte(plain.subspan(at, kNoiseBlock)) < kNoiseBits) break;
        // Two blocks: in the second one, what repeats within a window shows.
        const auto asked = plain.subspan(at, 2 * kNoiseBlock);
        if (number % kAskedOf == 0 && shrunk(asked) < asked.size() - asked.size() / 128) break;
    }
    return at;
}

std::size_t stored_bytes(std::size_t plain) {
    return plain + (plain + kMostInBlock - 1) / kMostInBlock * kStoredHeader;
}

void put_stored(std::span<const std::byte> plain, std::byte* room) {
    while (!plain.empty()) {
        const std::size_t bytes = std::min(plain.size(), kMostInBlock);
        const auto low = static_cast<std::byte>(bytes & 0xff), high = static_cast<std::byte>(bytes >> 8);
        const std::array<std::byte, kStoredHeader> header{std::byte{0}, low, high, ~low, ~high};
        std::memcpy(room, header.data(), header.size());
        std::memcpy(room + header.size(), plain.data(), bytes);
        room += header.size() + bytes;
        plain = plain.subspan(bytes);
    }
}

}  // namespace penstock::data
