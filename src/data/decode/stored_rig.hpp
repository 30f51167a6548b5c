// What tests store: bytes as filters leave them, made here without the code under test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "data/decode/pipeline.hpp"

namespace penstock::data::testing {

using Bytes = std::vector<std::byte>;

// Bytes that repeat, and differ from place to place.
inline Bytes some_bytes(std::size_t count, unsigned seed = 1) {
    Bytes bytes(count);
    for (std::size_t i = 0; i < count; ++i) {
        bytes[i] = static_cast<std::byte>((i / 7 + seed) * (i % 5 + 1) & 0xff);
    }
    return bytes;
}

// Bytes that any codec shortens, as elements of four.
inline Bytes smooth_bytes(std::size_t count) {
    Bytes bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>((i / 40 + i % 4 * 3) & 0xff);
    return bytes;
}

inline void put(Bytes& bytes, std::uint64_t number, int count, bool big_endian) {
    for (int i = 0; i < count; ++i) {
        const int place = big_endian ? count - 1 - i : i;
        bytes.push_back(static_cast<std::byte>(number >> 8 * place & 0xff));
    }
}

// RFC 1951 in stored blocks, inside RFC 1950.
inline Bytes zlib_of(const Bytes& plain) {
    Bytes stream{std::byte{0x78}, std::byte{0x01}};
    std::uint32_t low = 1, high = 0;
    for (const std::byte one : plain) {
        low = (low + std::to_integer<std::uint32_t>(one)) % 65521;
        high = (high + low) % 65521;
    }
    std::size_t at = 0;
    do {
        const std::size_t some = plain.size() - at < 60000 ? plain.size() - at : 60000;
        stream.push_back(static_cast<std::byte>(at + some == plain.size()));
        put(stream, some, 2, false);
        put(stream, ~some, 2, false);
        for (std::size_t i = 0; i < some; ++i) stream.push_back(plain[at + i]);
        at += some;
    } while (at < plain.size());
    put(stream, high << 16 | low, 4, true);
    return stream;
}

inline Bytes shuffled(const Bytes& plain, std::size_t item) {
    Bytes planes = plain;
    const std::size_t count = plain.size() / item;
    for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t k = 0; k < item; ++k) planes[k * count + i] = plain[i * item + k];
    }
    return planes;
}

inline bool has_deflate() {
    try {
        const Filter deflate{"deflate"};
        const Pipeline probe({&deflate, 1}, 1);
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

// Fault of decoding to exactly `out`.
inline std::string decode(const Pipeline& pipeline, const Bytes& stored, Bytes& out, std::uint32_t skipped = 0) {
    Scratch scratch;
    out.assign(pipeline.chunk_bytes(), std::byte{0xa5});
    return pipeline.decode({stored, skipped}, out, scratch);
}

}  // namespace penstock::data::testing
