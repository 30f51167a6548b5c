// Filters in a row: their order, masks, sizes, and what refuses a bomb.
#include "data/decode/pipeline.hpp"

#include <gtest/gtest.h>

#include "data/decode/checksums/sums.hpp"
#include "data/decode/stored_rig.hpp"
#include "penstock/error.hpp"

namespace penstock::data {
namespace {

using testing::Bytes;
using testing::decode;

Pipeline made_of(std::vector<Filter> filters, std::uint64_t chunk_bytes) { return Pipeline(filters, chunk_bytes); }

bool tells(const std::string& fault, const std::string& words) { return fault.find(words) != std::string::npos; }

TEST(Pipeline, without_filters_it_copies_a_chunk_and_wants_all_of_it) {
    const Bytes plain = testing::some_bytes(100);
    Bytes out;
    EXPECT_EQ(decode(made_of({}, 100), plain, out), "");
    EXPECT_EQ(out, plain);
    EXPECT_TRUE(tells(decode(made_of({}, 101), plain, out), "it has 100 bytes, its shape says 101"));
    EXPECT_TRUE(tells(decode(made_of({}, 99), plain, out), "it has 100 bytes, its shape says 99"));
}

TEST(Pipeline, filters_are_undone_from_the_last_to_the_first) {
    if (!testing::has_deflate()) GTEST_SKIP() << "built without libdeflate";
    const Bytes plain = testing::some_bytes(4000);
    Bytes out;
    const Pipeline pipeline = made_of({{"shuffle", {8}}, {"deflate", {6}}}, plain.size());
    EXPECT_EQ(decode(pipeline, testing::zlib_of(testing::shuffled(plain, 8)), out), "");
    EXPECT_EQ(out, plain);
}

TEST(Pipeline, a_filter_that_the_mask_names_is_left_out) {
    if (!testing::has_deflate()) GTEST_SKIP() << "built without libdeflate";
    const Bytes plain = testing::some_bytes(4000);
    Bytes out;
    const Pipeline pipeline = made_of({{"shuffle", {8}}, {"deflate", {6}}}, plain.size());
    EXPECT_EQ(decode(pipeline, testing::shuffled(plain, 8), out, 0b10), "");
    EXPECT_EQ(out, plain);
    EXPECT_EQ(decode(pipeline, testing::zlib_of(plain), out, 0b01), "");
    EXPECT_EQ(out, plain);
    EXPECT_EQ(decode(pipeline, plain, out, 0b11), "");
    EXPECT_EQ(out, plain);
}

TEST(Pipeline, two_codecs_of_one_chunk_are_both_undone) {
    if (!testing::has_deflate()) GTEST_SKIP() << "built without libdeflate";
    const Bytes plain = testing::some_bytes(4000);
    Bytes out;
    const Pipeline pipeline = made_of({{"deflate", {}}, {"deflate", {}}}, plain.size());
    EXPECT_EQ(decode(pipeline, testing::zlib_of(testing::zlib_of(plain)), out), "");
    EXPECT_EQ(out, plain);
}

// What a sum is of lies in the memory of the stage before it, and the stage behind it must not write there.
TEST(Pipeline, a_stage_that_gives_a_part_of_what_is_stored_leaves_it_whole) {
    if (!testing::has_deflate()) GTEST_SKIP() << "built without libdeflate";
    const Bytes plain = testing::some_bytes(4000);
    for (const std::string sum : {"fletcher32", "crc32c"}) {
        std::vector<Filter> filters{{"shuffle", {4}}, {"shuffle", {8}}};
        Bytes stored = testing::shuffled(testing::shuffled(plain, 4), 8);
        for (int sums = 1; sums < 4; ++sums) {
            filters.push_back({sum});
            testing::put(stored, sum == "crc32c" ? crc32c(stored) : fletcher32(stored), 4, false);
            std::vector<Filter> all = filters;
            all.push_back({"deflate"});
            Bytes out;
            EXPECT_EQ(decode(made_of(all, plain.size()), testing::zlib_of(stored), out), "") << sum << sums;
            EXPECT_EQ(out, plain) << sum << sums;
        }
    }
}

TEST(Pipeline, a_bomb_is_refused_before_memory_is_taken_for_it) {
    if (!testing::has_deflate()) GTEST_SKIP() << "built without libdeflate";
    const Pipeline pipeline = made_of({{"deflate", {}}}, std::uint64_t{1} << 39);
    Scratch scratch;
    std::byte one{};  // never written: nothing is decoded
    const Bytes stored = testing::zlib_of(testing::some_bytes(10));
    const std::string fault =
        pipeline.decode({stored}, {&one, static_cast<std::size_t>(pipeline.chunk_bytes())}, scratch);
    EXPECT_TRUE(tells(fault, "cannot become the 549755813888 bytes of a chunk")) << fault;
}

TEST(Pipeline, a_filter_without_a_decoder_is_named) {
    try {
        made_of({{"szip", {}}}, 10);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.info().code, ErrorCode::unsupported);
        EXPECT_TRUE(tells(error.info().cause, "szip"));
    }
}

TEST(Pipeline, what_a_filter_makes_too_short_or_too_long_is_told_with_both_sizes) {
    if (!testing::has_deflate()) GTEST_SKIP() << "built without libdeflate";
    Bytes out;
    const Bytes stored = testing::zlib_of(testing::some_bytes(4000));
    const std::string short_of = decode(made_of({{"deflate", {}}}, 4001), stored, out);
    EXPECT_TRUE(tells(short_of, "filter deflate gave 4000 bytes, its shape says 4001")) << short_of;
    const std::string too_long = decode(made_of({{"deflate", {}}}, 3999), stored, out);
    EXPECT_TRUE(tells(too_long, "more than the 3999 bytes of its shape")) << too_long;
}

}  // namespace
}  // namespace penstock::data
