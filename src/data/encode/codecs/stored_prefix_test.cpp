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

// Numbers of particles, sorted: bytes that grow slowly in front of those that do not change. Their values are as
// frequent as those of noise.
TEST(StoredPrefix, of_sorted_numbers_leaves_what_repeats) {
    if (!has_deflate()) GTEST_SKIP() << "this build has no libdeflate";
    std::mt19937_64 random(3);
    std::vector<std::uint64_t> numbers(kMiB / 8);
    for (std::uint64_t& one : numbers) one = random() >> 24U;
    std::sort(numbers.begin(), numbers.end());
    Bytes plain(kMiB);
    std::memcpy(plain.data(), numbers.data(), kMiB);
    for (const std::uint32_t level : {1u, 4u}) {
        const std::vector<Filter> filters = {{"shuffle", {8}}, {"deflate", {level}}};
        const Bytes made = packed(filters, plain);
        EXPECT_LT(made.size(), kMiB * 46 / 100) << "three bytes of eight are noise";
        Bytes out;
        EXPECT_EQ(testing::decode(Pipeline(filters, kMiB), made, out), "");
        EXPECT_EQ(out, plain);
    }
}

TEST(StoredPrefix, of_noise_and_then_repeats_of_any_distance_ends_there) {
    for (const std::size_t distance : {300u, 1000u, 1001u, 5001u, 20'000u, 32'000u}) {
        Bytes plain = noisy(kMiB);
        constexpr std::size_t kFrom = 10 * 32768;
        for (std::size_t i = kFrom; i < kMiB; ++i) plain[i] = plain[i - distance];
        const std::size_t found = stored_prefix(plain, [](auto some) { return some.size() / 2; });
        EXPECT_EQ(found, 0u) << "the first pair is always asked about";
        std::size_t asked = 0;
        const std::size_t stored = stored_prefix(plain, [&](std::span<const std::byte> some) {
            asked = static_cast<std::size_t>(some.data() - plain.data());
            return asked < kFrom ? some.size() : some.size() / 2;
        });
        EXPECT_LE(stored, kFrom + 32768) << distance;
    }
}

TEST(RunsPrefix, is_whole_blocks_and_never_the_last) {
    Bytes plain(kMiB, std::byte{9});
    EXPECT_EQ(runs_prefix(plain), kMiB - 32768);
    for (std::size_t i = 0; i < kMiB; i += 3000) plain[i] = std::byte{8};
    EXPECT_EQ(runs_prefix(plain), kMiB - 32768) << "long runs";
    plain = Bytes(kMiB);
    const Bytes noise = noisy(kMiB);
    std::copy(noise.begin() + 100'000, noise.end(), plain.begin() + 100'000);
    EXPECT_EQ(runs_prefix(plain), 100'000 / 32768 * 32768u);
    EXPECT_EQ(runs_prefix(noise), 0u);
    EXPECT_EQ(runs_prefix(std::span(plain).first(32'768)), 0u);
    EXPECT_EQ(runs_prefix({}), 0u);
}

// Float64 with few bits of the mantissa: five planes of zeros, then others.
TEST(RunsPrefix, begins_streams_that_readers_undo_and_are_no_longer) {
    if (!has_deflate()) GTEST_SKIP() << "this build has no libdeflate";
    constexpr std::size_t kAll = 300'000;
    const Bytes noise = noisy(kAll);
    for (const char* name : {"deflate", "zlib", "gzip"}) {
        for (const std::uint32_t level : {1u, 4u, 9u}) {
            for (const std::size_t zeros : {32'768u, 32'769u, 200'000u, 299'999u, 300'000u}) {
                Bytes plain = noise;
                for (std::size_t i = zeros; i < kAll; ++i) plain[i] &= std::byte{7};
                std::fill_n(plain.begin(), zeros, std::byte{});
                const std::vector<Filter> filters = {{name, {level}}};
                const Bytes made = packed(filters, plain);
                const Bytes rest = packed(filters, Bytes(plain.data() + zeros, plain.data() + kAll));
                EXPECT_LE(made.size(), rest.size() + rest.size() / 50 + zeros / 200 + 64) << name << level << zeros;
                Bytes out;
                ASSERT_EQ(testing::decode(Pipeline(filters, kAll), made, out), "") << name << level << zeros;
                EXPECT_EQ(out, plain) << name << level << zeros;
            }
        }
    }
}

}  // namespace
}  // namespace penstock::data
