// Noise in front of a chunk is stored and what can become smaller is not; streams with stored blocks are those of zlib
// and gzip. Tried with it: deflate.
#include "data/encode/codecs/stored_prefix.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "data/decode/stored_rig.hpp"
#include "data/encode/encoder.hpp"

namespace penstock::data {
namespace {

using testing::Bytes;

constexpr std::size_t kMiB = std::size_t{1} << 20;

Bytes noisy(std::size_t count) {
    std::mt19937 random(11);
    Bytes bytes(count);
    std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::byte>(random() & 0xff); });
    return bytes;
}

// Numbers whose low half is noise.
Bytes measured_floats(std::size_t count) {
    std::mt19937 random(5);
    std::normal_distribution<float> noise(0, 0.1F);
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) {
        values[i] = 280 + 20 * std::sin(static_cast<float>(i) / 4000) + noise(random);
    }
    Bytes bytes(count * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

bool has_deflate() {
    const std::vector<std::string> names = encoder_names();
    return std::find(names.begin(), names.end(), "deflate") != names.end();
}

Bytes packed(const std::vector<Filter>& filters, const Bytes& plain) {
    const Encoder encoder(filters, plain.size());
    Scratch scratch;
    Bytes room(encoder.most_bytes());
    const Encoded made = encoder.encode(plain, room, scratch);
    EXPECT_EQ(made.fault, "");
    room.resize(made.bytes);
    return room;
}

std::size_t unchanged(std::span<const std::byte> some) { return some.size(); }

TEST(StoredPrefix, is_the_noise_and_whole_blocks_of_it) {
    Bytes plain = noisy(kMiB);
    EXPECT_EQ(stored_prefix(plain, unchanged), kMiB - 2 * 32768) << "the end is left to the library";
    std::fill(plain.begin() + 300'000, plain.end(), std::byte{1});
    const std::size_t found = stored_prefix(plain, unchanged);
    EXPECT_EQ(found, 300'000 / 32768 * 32768u);
    EXPECT_EQ(stored_prefix(std::span(plain).first(65'536), unchanged), 0u);
}

TEST(StoredPrefix, is_nothing_where_the_library_finds_what_repeats) {
    if (!has_deflate()) GTEST_SKIP() << "this build has no libdeflate";
    EXPECT_EQ(stored_prefix(noisy(kMiB), [](auto some) { return some.size() / 2; }), 0u);
    Bytes ramp(kMiB), rows = noisy(kMiB);
    for (std::size_t i = 0; i < kMiB; ++i) ramp[i] = static_cast<std::byte>(i & 0xff);  // each value as often
    for (std::size_t i = 16'384; i < kMiB; ++i) rows[i] = rows[i - 16'384];
    for (const Bytes& one : {ramp, rows}) {
        const std::vector<Filter> filters = {{"deflate", {1}}};
        const Bytes made = packed(filters, one);
        EXPECT_LT(made.size(), kMiB / 10) << "it was stored";
        Bytes out;
        EXPECT_EQ(testing::decode(Pipeline(filters, kMiB), made, out), "");
        EXPECT_EQ(out, one);
    }
}

TEST(StoredPrefix, makes_streams_that_readers_undo) {
    if (!has_deflate()) GTEST_SKIP() << "this build has no libdeflate";
    for (const char* name : {"deflate", "zlib", "gzip"}) {
        for (const std::uint32_t level : {1u, 4u, 9u}) {
            for (const std::size_t count : {kMiB, kMiB - 1, std::size_t{3} * 65'535, std::size_t{65'537}}) {
                const Bytes plain = noisy(count);
                const std::vector<Filter> filters = {{name, {level}}};
                const Bytes made = packed(filters, plain);
                EXPECT_LE(made.size(), count + count / 1000 + 64) << name;
                Bytes out;
                EXPECT_EQ(testing::decode(Pipeline(filters, count), made, out), "") << name << count;
                EXPECT_EQ(out, plain) << name << " " << level << " " << count;
            }
        }
    }
}

// The half that is noise makes the stream no longer than a library that looks through all of it.
TEST(StoredPrefix, of_shuffled_floats_costs_no_room) {
    if (!has_deflate()) GTEST_SKIP() << "this build has no libdeflate";
    const std::vector<Filter> filters = {{"shuffle", {4}}, {"deflate", {4}}};
    const Bytes plain = measured_floats(kMiB / 4), made = packed(filters, plain);
    Bytes out;
    EXPECT_EQ(testing::decode(Pipeline(filters, plain.size()), made, out), "");
    EXPECT_EQ(out, plain);
    EXPECT_EQ(std::to_integer<int>(made[2]) & 7, 0) << "a stored block, and not the last";
    std::size_t halves = 0;
    for (std::size_t part = 0; part < 2; ++part) {  // two planes each
        Bytes planes(plain.size() / 2);
        for (std::size_t i = 0; i < plain.size() / 4; ++i) {
            planes[i] = plain[4 * i + 2 * part];
            planes[plain.size() / 4 + i] = plain[4 * i + 2 * part + 1];
        }
        halves += part == 0 ? planes.size() : packed({{"deflate", {4}}}, planes).size();
    }
    EXPECT_LT(made.size(), halves + halves / 200);
}

}  // namespace
}  // namespace penstock::data
