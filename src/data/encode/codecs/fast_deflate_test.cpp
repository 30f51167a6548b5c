// Level 1 of deflate: streams that readers undo, whoever makes them, and no write behind the room.
#include "data/encode/codecs/fast_deflate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
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
