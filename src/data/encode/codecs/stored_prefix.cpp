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

constexpr std::size_t kLongRun = 1024;  // on average; a search makes less than 1 of 100 of such bytes, and so do runs

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

// Notices bytes that repeat within the window, block after block. Four bytes are noted at each eighth place, and looked
// for at eight places in a row, one of which is a multiple of eight away from an earlier one. By chance that is rare.
class Repeats {
  public:
    // Whether bytes of at least one of kGroupsOf groups were there before.
    bool many(std::span<const std::byte> plain, std::size_t block) {
        std::size_t found = 0;
        for (std::size_t at = block; at + kBetween <= block + kNoiseBlock; at += kBetween) {
            bool is_known = false;
            for (std::size_t near = at + 1; near <= at + kStep; ++near) is_known |= knows(plain, near);
            found += is_known;
            for (std::size_t place = at; place < at + kBetween; place += kStep) note(plain, place);
        }
        return found * kGroupsOf >= kNoiseBlock / kBetween;
    }

  private:
    static constexpr std::size_t kStep = 8, kBetween = 256, kGroupsOf = 32;
    static constexpr std::uint32_t kSlotBits = 13;

    static std::uint32_t word(std::span<const std::byte> plain, std::size_t at) {
        std::uint32_t found = 0;
        std::memcpy(&found, plain.data() + at, sizeof found);
        return found;
    }
    std::uint32_t& slot(std::uint32_t word) { return slots_[word * 0x9e3779b1U >> (32 - kSlotBits)]; }
    void note(std::span<const std::byte> plain, std::size_t at) {
        const std::uint32_t noted = word(plain, at);
        slot(noted) = noted;
    }
    bool knows(std::span<const std::byte> plain, std::size_t at) {
        const std::uint32_t wanted = word(plain, at);
        return slot(wanted) == wanted;
    }

    // The last words of their slots: two blocks of them. Zero, of which all slots begin, is frequent in no noise.
    std::array<std::uint32_t, std::size_t{1} << kSlotBits> slots_{};
};

}  // namespace

std::size_t runs_prefix(std::span<const std::byte> plain) {
    std::size_t at = 0;
    for (; at + kNoiseBlock < plain.size(); at += kNoiseBlock) {
        const std::byte* const block = plain.data() + at;
        std::size_t changes = 0;
        for (std::size_t i = 1; i < kNoiseBlock; ++i) changes += block[i] != block[i - 1];
        if (changes * kLongRun > kNoiseBlock) break;
    }
    return at;
}

std::size_t stored_prefix(std::span<const std::byte> plain,
                          const std::function<std::size_t(std::span<const std::byte>)>& shrunk) {
    Repeats repeats;
    std::size_t at = 0;
    for (std::size_t number = 0; at + 2 * kNoiseBlock < plain.size(); ++number, at += kNoiseBlock) {
        if (bits_of_a_byte(plain.subspan(at, kNoiseBlock)) < kNoiseBits) break;
        // Two blocks: in the second one, what repeats within a window shows.
        const auto asked = plain.subspan(at, 2 * kNoiseBlock);
        const bool may_repeat = repeats.many(plain, at) || number % kAskedOf == 0;
        if (may_repeat && shrunk(asked) < asked.size() - asked.size() / 128) break;
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
