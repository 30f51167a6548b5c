// What an Encoder makes, a Pipeline of the same filters undoes; and framings as their formats define them. Where a
// library is missing, its codec (deflate_absent, zstd_absent, lz4_absent) is none of encoder_names(), and left out.
#include "data/encode/encoder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "data/decode/stored_rig.hpp"
#include "data/encode/codecs/fast_deflate.hpp"
#include "penstock/error.hpp"
#include "penstock/types.hpp"

namespace penstock::data {
namespace {

using testing::Bytes;

Bytes noise(std::size_t count) {
    std::mt19937 random(7);
    Bytes bytes(count);
    std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::byte>(random() & 0xff); });
    return bytes;
}

// Encodes into exactly the room that is promised to be enough, with bytes behind it that must stay.
Bytes encoded(const std::vector<Filter>& filters, const Bytes& plain) {
    constexpr std::byte kGuard{0x5a};
    const Encoder encoder(filters, plain.size());
    Scratch scratch;
    Bytes room(encoder.most_bytes() + 64, kGuard);
    const Encoded made = encoder.encode(plain, std::span(room).first(encoder.most_bytes()), scratch);
    EXPECT_EQ(made.fault, "");
    EXPECT_TRUE(std::all_of(room.end() - 64, room.end(), [](std::byte one) { return one == kGuard; }));
    room.resize(made.bytes);
    return room;
}

bool is_built(const std::string& name) {
    const std::vector<std::string> names = encoder_names();
    return std::find(names.begin(), names.end(), name) != names.end();
}

const std::vector<std::vector<Filter>> kChains = {
    {},
    {{"shuffle", {4}}},
    {{"fletcher32", {}}},
    {{"crc32c", {}}},
    {{"deflate", {4}}},
    {{"gzip", {9}}},
    {{"zstd", {3}}},
    {{"hdf5-lz4", {}}},
    {{"lz4", {}}},
    {{"shuffle", {8}}, {"deflate", {1}}, {"fletcher32", {}}},
    {{"shuffle", {3}}, {"zstd", {19}}, {"crc32c", {}}},
    {{"fletcher32", {}}, {"shuffle", {2}}, {"hdf5-lz4", {}}, {"fletcher32", {}}},
};

TEST(Encoder, a_pipeline_of_the_same_filters_gives_the_plain_bytes_again) {
    for (const std::vector<Filter>& chain : kChains) {
        if (!std::all_of(chain.begin(), chain.end(), [](const Filter& one) { return is_built(one.name); })) continue;
        for (const std::size_t count : {1u, 2u, 7u, 64u, 4095u, 100000u}) {
            for (const Bytes& plain : {testing::smooth_bytes(count), noise(count), Bytes(count)}) {
                const Bytes stored = encoded(chain, plain);
                Bytes out;
                EXPECT_EQ(testing::decode(Pipeline(chain, count), stored, out), "");
                EXPECT_EQ(out, plain) << (chain.empty() ? "none" : chain[0].name) << " " << count;
            }
        }
    }
}

TEST(Encoder, codecs_shorten_what_is_smooth) {
    for (const char* const name : {"deflate", "gzip", "zstd", "hdf5-lz4", "lz4"}) {
        if (!is_built(name)) continue;
        EXPECT_LT(encoded({{name, {4}}}, testing::smooth_bytes(100000)).size(), 30000u) << name;
    }
}

TEST(Encoder, a_block_of_lz4_that_becomes_no_shorter_is_stored_as_it_is) {
    if (!is_built("hdf5-lz4")) GTEST_SKIP() << "this build has no liblz4";
    const Bytes plain = noise(1000);
    Bytes wanted;
    testing::put(wanted, 1000, 8, true);
    testing::put(wanted, 1000, 4, true);
    testing::put(wanted, 1000, 4, true);
    wanted.insert(wanted.end(), plain.begin(), plain.end());
    EXPECT_EQ(encoded({{"hdf5-lz4", {}}}, plain), wanted);
}

TEST(Encoder, checksums_lie_behind_the_data_little_endian) {
    Bytes plain, wanted;
    for (const char one : {'1', '2', '3', '4', '5', '6', '7', '8', '9'}) plain.push_back(std::byte(one));
    wanted = plain;
    testing::put(wanted, 0xe3069283, 4, false);
    EXPECT_EQ(encoded({{"crc32c", {}}}, plain), wanted);
}

TEST(Encoder, a_level_that_a_codec_has_not_is_refused) {
    const std::pair<const char*, std::uint32_t> wrong[] = {{"deflate", 0}, {"deflate", 13}, {"gzip", 13}, {"zstd", 23}};
    for (const auto& [name, level] : wrong) {
        const Filter filter{name, {level}};
        if (is_built(name)) {
            EXPECT_THROW(Encoder({&filter, 1}, 8), Error) << name << level;
        }
    }
}

TEST(Encoder, tells_whose_code_a_filter_is) {
    EXPECT_EQ(encoder_library({"shuffle", {4}}), "");
    EXPECT_EQ(encoder_library({"zstd", {1}}), "libzstd");
    EXPECT_EQ(encoder_library({"gzip", {2}}), "libdeflate");
    EXPECT_EQ(encoder_library({"gzip", {1}}), make_fast_deflate() ? "ISA-L and libdeflate" : "libdeflate");
    EXPECT_THROW(encoder_library({"nothing", {}}), Error);
}

TEST(Encoder, a_filter_that_it_does_not_know_is_named) {
    const Filter filter{"szip", {}};
    try {
        const Encoder encoder({&filter, 1}, 8);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::unsupported);
        EXPECT_NE(error.info().cause.find("szip"), std::string::npos);
    }
}

// A thread takes 50 us to begin. Deflate needs ten times that for 64 KiB, lz4 for four times as many.
TEST(Encoder, a_thread_is_worth_more_bytes_of_a_quick_filter) {
    const auto worth = [](const std::vector<Filter>& filters) { return Encoder(filters, 4096).bytes_of_thread(); };
    EXPECT_EQ(worth({{"shuffle", {4}}}), kMiB);
    if (is_built("deflate")) {
        EXPECT_EQ(worth({{"shuffle", {4}}, {"deflate", {4}}, {"fletcher32", {}}}), 64 * kKiB);
    }
    if (is_built("lz4")) {
        EXPECT_EQ(worth({{"shuffle", {4}}, {"lz4", {1}}}), 256 * kKiB);
    }
}

}  // namespace
}  // namespace penstock::data
