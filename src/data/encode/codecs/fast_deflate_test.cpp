// Level 1 of deflate: streams that readers undo, whoever makes them, and no write behind the room.
#include "data/encode/codecs/fast_deflate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <random>
#include <vector>

#include "data/decode/stored_rig.hpp"
#include "data/encode/encoder.hpp"

namespace penstock::data {
namespace {

using testing::Bytes;

enum class Content { zeros, noise, few_values, ramp };
constexpr Content kContents[] = {Content::zeros, Content::noise, Content::few_values, Content::ramp};

Bytes bytes_of(Content content, std::size_t count) {
    std::mt19937 draw(7);
    Bytes made(count);
    for (std::size_t i = 0; i < count; ++i) {
        switch (content) {
            case Content::zeros: break;
            case Content::noise: made[i] = static_cast<std::byte>(draw() & 0xff); break;
            case Content::few_values: made[i] = static_cast<std::byte>(draw() & 7); break;
            case Content::ramp: made[i] = static_cast<std::byte>(i / 100 & 0xff); break;
        }
    }
    return made;
}

TEST(FastDeflate, level_1_is_undone_by_readers_of_every_frame) {
    if (!testing::has_deflate()) GTEST_SKIP() << "this build has no libdeflate";
    for (const char* name : {"deflate", "zlib", "gzip"}) {
        for (const Content content : kContents) {
            for (const std::size_t count : {1u, 3u, 100u, 65'535u, 65'536u, 300'000u}) {
                const std::vector<Filter> filters = {{name, {1}}};
                const Bytes plain = bytes_of(content, count);
                const Encoder encoder(filters, count);
                Scratch scratch;
                Bytes room(encoder.most_bytes()), out;
                const Encoded made = encoder.encode(plain, room, scratch);
                ASSERT_EQ(made.fault, "") << name << count;
                room.resize(made.bytes);
                EXPECT_EQ(testing::decode(Pipeline(filters, count), room, out), "") << name << count;
                EXPECT_EQ(out, plain) << name << count;
            }
        }
    }
}

// Shuffled float32 whose rows are all the same, of which so many bits of the mantissa are kept: by planes of bytes.
Bytes same_rows(std::size_t row, unsigned bits) {
    constexpr std::size_t kNumbers = std::size_t{1} << 18;
    std::mt19937 draw(3);
    std::normal_distribution<float> noise(280, 20);
    std::vector<std::uint32_t> words(row);
    for (std::uint32_t& word : words) word = std::bit_cast<std::uint32_t>(noise(draw)) >> (23 - bits) << (23 - bits);
    Bytes planes(4 * kNumbers);
    for (std::size_t i = 0; i < planes.size(); ++i) {
        planes[i] = static_cast<std::byte>(words[i % kNumbers % row] >> 8 * (i / kNumbers) & 0xff);
    }
    return planes;
}

TEST(FastDeflate, rows_that_repeat_are_about_as_small_as_of_the_next_level) {
    if (!testing::has_deflate()) GTEST_SKIP() << "this build has no libdeflate";
    for (const unsigned bits : {23u, 10u, 7u}) {
        for (const std::size_t row : {200u, 1024u, 2048u, 3000u, 4320u, 8192u, 16384u, 24000u}) {
            const Bytes plain = same_rows(row, bits);
            std::size_t sizes[2] = {};
            for (const std::uint32_t level : {1u, 2u}) {
                const std::vector<Filter> filters = {{"deflate", {level}}};
                const Encoder encoder(filters, plain.size());
                Scratch scratch;
                Bytes room(encoder.most_bytes());
                sizes[level - 1] = encoder.encode(plain, room, scratch).bytes;
            }
            EXPECT_LT(sizes[0], 3 * sizes[1]) << bits << " bits, rows of " << row;
        }
    }
}

TEST(FastDeflate, says_where_the_room_is_too_small_and_writes_nothing_behind_it) {
    const auto fast = make_fast_deflate();
    if (!fast) GTEST_SKIP() << "this build has no ISA-L";
    const Bytes plain = bytes_of(Content::few_values, 100'000);
    Bytes whole(plain.size());
    const std::size_t needed = fast->compress(plain, whole);
    ASSERT_GT(needed, 30'000u);
    ASSERT_LT(needed, 50'000u);
    for (const std::size_t less : {std::size_t{0}, std::size_t{9}, needed / 2}) {
        Bytes room(needed, std::byte{0xee});
        EXPECT_EQ(fast->compress(plain, std::span(room).first(less)), 0u) << less;
        EXPECT_TRUE(std::all_of(room.begin() + static_cast<std::ptrdiff_t>(less), room.end(),
                                [](std::byte one) { return one == std::byte{0xee}; }))
            << less;
    }
    EXPECT_EQ(fast->compress(plain, whole), needed) << "the same each time";
}

}  // namespace
}  // namespace penstock::data
