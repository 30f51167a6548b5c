// See lookup3.hpp.
#include "formats/hdf5/lookup3.hpp"

#include <bit>

namespace penstock::formats {
namespace {

struct ThreeWords {
    std::uint32_t a, b, c;

    void mix() {
        a = (a - c) ^ std::rotl(c, 4), c += b;
        b = (b - a) ^ std::rotl(a, 6), a += c;
        c = (c - b) ^ std::rotl(b, 8), b += a;
        a = (a - c) ^ std::rotl(c, 16), c += b;
        b = (b - a) ^ std::rotl(a, 19), a += c;
        c = (c - b) ^ std::rotl(b, 4), b += a;
    }
    std::uint32_t last() {
        c = (c ^ b) - std::rotl(b, 14);
        a = (a ^ c) - std::rotl(c, 11);
        b = (b ^ a) - std::rotl(a, 25);
        c = (c ^ b) - std::rotl(b, 16);
        a = (a ^ c) - std::rotl(c, 4);
        b = (b ^ a) - std::rotl(a, 14);
        return (c ^ b) - std::rotl(b, 24);
    }
};

std::uint32_t little_word(std::span<const std::byte> bytes, std::size_t at) {
    std::uint32_t word = 0;
    for (std::size_t i = 0; i < 4 && at + i < bytes.size(); ++i)
        word |= static_cast<std::uint32_t>(bytes[at + i]) << (8 * i);
    return word;
}

}  // namespace

std::uint32_t lookup3(std::span<const std::byte> bytes) {
    constexpr std::uint32_t kBegin = 0xdeadbeef;
    constexpr std::size_t kLookupBytes = 12;
    const std::uint32_t begin = kBegin + static_cast<std::uint32_t>(bytes.size());
    ThreeWords words{begin, begin, begin};
    if (bytes.empty()) return words.c;
    std::size_t at = 0;
    for (;; at += kLookupBytes) {
        words.a += little_word(bytes, at);
        words.b += little_word(bytes, at + 4);
        words.c += little_word(bytes, at + 8);
        if (bytes.size() - at <= kLookupBytes) return words.last();
        words.mix();
    }
}

}  // namespace penstock::formats
