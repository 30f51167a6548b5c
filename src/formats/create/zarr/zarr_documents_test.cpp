// Texts and names of a new Zarr store: what the specification asks for, to the letter.
#include "formats/create/zarr/zarr_documents.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "data/decode/checksums/sums.hpp"
#include "penstock/error.hpp"

namespace penstock::formats {
namespace {

NewVariable variable(const std::string& name, const char* dtype, std::vector<std::size_t> dimensions) {
    NewVariable made;
    made.name = name;
    type_named(dtype, made.type);
    made.dimensions = std::move(dimensions);
    return made;
}

FileSchema schema() {
    FileSchema made;
    made.dimensions = {{"time", 0, true}, {"y", 5, false}, {"x \"1\"", 7, false}};
    made.variables = {variable("time", "float64", {0}), variable("T", "float32", {0, 1, 2}),
                      variable("packed", "int16", {0, 1, 2}), variable("x", "float64", {2}), variable("z", "bool", {})};
    made.variables[2].filters = {{"shuffle", {2}}, {"zstd", {3}}};
    made.variables[2].chunk = {2, 7};
    made.variables[1].attributes = {text_attribute("units", "K"), number_attribute("_FillValue", -999.0),
                                    number_attribute("limit", std::numeric_limits<double>::infinity()),
                                    number_attribute("count", std::int32_t{3}), number_attribute("whole", 2.0F)};
    return made;
}

ZarrDocuments documents() { return {schema(), "x.zarr"}; }

TEST(ZarrDocuments, tell_the_fill_value_by_the_type_of_the_elements) {
    FileSchema made = schema();
    made.variables[1].attributes = {number_attribute("_FillValue", std::int32_t{-999})};
    made.variables[2].attributes = {number_attribute("_FillValue", -7.0)};
    const ZarrDocuments told(made, "x.zarr");
    EXPECT_NE(told.array(1, 1).find(R"("attributes":{"_FillValue":"AAAAAAA4j8A="})"), std::string::npos);
    EXPECT_NE(told.array(2, 1).find(R"("attributes":{"_FillValue":-7})"), std::string::npos) << told.array(2, 1);
    made.variables[2].attributes = {number_attribute("_FillValue", 1.5)};
    EXPECT_THROW(ZarrDocuments(made, "x.zarr"), Error);
}

TEST(ZarrDocuments, of_an_array_say_where_each_step_is) {
    EXPECT_EQ(documents().array(1, 9),
              R"({"zarr_format":3,"node_type":"array","shape":[9,5,7],"data_type":"float32",)"
              R"("chunk_grid":{"name":"regular","configuration":{"chunk_shape":[256,5,7]}},)"
              R"("chunk_key_encoding":{"name":"default","configuration":{"separator":"."}},"fill_value":"NaN",)"
              R"("codecs":[{"name":"bytes","configuration":{"endian":"little"}}],)"
              R"("attributes":{"units":"K","_FillValue":"AAAAAAA4j8A=","limit":"Infinity","count":3,"whole":2.0},)"
              R"("dimension_names":["time","y","x \"1\""]})");
    EXPECT_EQ(documents().data_file({1}, 8), "T/c.0.0.0");
    EXPECT_EQ(documents().data_file({2}, 8), "packed/c.0.0.0");
    EXPECT_EQ(documents().data_file({0}, 255), "time/c.0");
    EXPECT_EQ(documents().data_file({0}, 256), "time/c.1");
    EXPECT_EQ(documents().data_file({3}, 8), "x/c.0") << "of all steps";
    EXPECT_EQ(documents().data_file({4}, 0), "z/c") << "one value";
    EXPECT_NE(documents().array(4, 0).find(R"("fill_value":false,"codecs":[{"name":"bytes"}])"), std::string::npos);
}

TEST(ZarrDocuments, of_compressed_arrays_have_shards_of_whole_chunks) {
    const std::string packed = documents().array(2, 1);
    EXPECT_NE(packed.find(R"("chunk_shape":[256,6,7])"), std::string::npos) << "3 chunks of 2 along y: " << packed;
    EXPECT_NE(packed.find(R"("chunk_shape":[1,2,7],"codecs":[{"name":"bytes","configuration":{"endian":"little"}},)"
                          R"({"name":"numcodecs.shuffle","configuration":{"elementsize":2}},)"
                          R"({"name":"zstd","configuration":{"level":3,"checksum":false}}],"index_codecs":)"),
              std::string::npos)
        << packed;
    EXPECT_TRUE(documents().is_sharded(2));
    EXPECT_FALSE(documents().is_sharded(1));
}

TEST(ZarrDocuments, of_small_steps_have_several_in_a_chunk) {
    FileSchema made = schema();
    const auto steps_of = [&](std::uint64_t cells) {
        made.dimensions[2].length = cells;  // of 5 * 4 bytes
        return ZarrDocuments(made, "x.zarr").steps_in_file(1);
    };
    EXPECT_EQ(steps_of(1), 256u) << "as of times";
    EXPECT_EQ(steps_of(1 << 14), 3u) << "3 * 320 KiB";
    EXPECT_EQ(steps_of(1 << 15), 1u);
    EXPECT_EQ(steps_of(1 << 30), 1u) << "larger than any chunk";
    made.dimensions[2].length = 1 << 14;
    const ZarrDocuments told(made, "x.zarr");
    EXPECT_EQ(told.data_file({1}, 8), "T/c.2.0.0");
    EXPECT_NE(told.array(1, 8).find(R"("chunk_shape":[3,5,16384])"), std::string::npos) << told.array(1, 8);
}

constexpr const char* kSummed = R"({"name":"crc32c"}],"index_location":"end")";

TEST(ZarrDocuments, of_a_shard_of_one_step_have_its_index_behind_it_with_a_sum) {
    FileSchema made = schema();
    made.dimensions[2].length = 1 << 18;  // of 5 * 2 bytes
    made.variables[2].chunk = {2, 1 << 18};
    const ZarrDocuments told(made, "x.zarr");
    ASSERT_EQ(told.steps_in_file(2), 1u);
    EXPECT_NE(told.array(2, 1).find(kSummed), std::string::npos) << told.array(2, 1);
    EXPECT_TRUE(told.file_head(2).empty());
    const StepIndex index = told.step_index({2}, 7, {{0, 315}, {10, 300, 5}});
    EXPECT_EQ(index.offset_bytes, 315u);
    ASSERT_EQ(index.bytes.size(), 3 * 16 + 4u);
    const std::uint64_t expected[] = {0, 10, 10, 300, 310, 5};
    EXPECT_EQ(std::memcmp(index.bytes.data(), expected, sizeof expected), 0);
    const std::uint32_t sum = data::crc32c(std::span(index.bytes).first(48));
    EXPECT_EQ(std::memcmp(index.bytes.data() + 48, &sum, 4), 0);
}

TEST(ZarrDocuments, of_a_shard_of_small_steps_have_room_for_their_entries_in_front) {
    const ZarrDocuments told = documents();
    ASSERT_EQ(told.steps_in_file(2), 256u);
    EXPECT_EQ(told.array(2, 1).find("crc32c"), std::string::npos) << "a sum of entries that are yet to come";
    EXPECT_NE(told.array(2, 1).find(R"("index_location":"start")"), std::string::npos);
    EXPECT_NE(told.array(2, 1).find(R"("chunk_shape":[256,6,7])"), std::string::npos);
    const std::vector<std::byte> head = told.file_head(2);
    EXPECT_EQ(head, std::vector<std::byte>(256 * 3 * 16, std::byte{0xff})) << "no chunk is stored";
    const StepIndex index = told.step_index({2}, 256 + 9, {{50'000, 315}, {10, 300, 5}});
    EXPECT_EQ(index.offset_bytes, 9u * 3 * 16);
    const std::uint64_t expected[] = {50'000, 10, 50'010, 300, 50'310, 5};
    ASSERT_EQ(index.bytes.size(), sizeof expected);
    EXPECT_EQ(std::memcmp(index.bytes.data(), expected, sizeof expected), 0);
    EXPECT_EQ(told.data_file({2}, 256), "packed/c.1.0.0");
}

TEST(ZarrDocuments, of_the_root_have_those_of_all_arrays) {
    const std::string root = documents().root(4);
    for (std::size_t i = 0; i < schema().variables.size(); ++i)
        EXPECT_NE(root.find(documents().array(i, 4)), std::string::npos) << i;
    EXPECT_EQ(documents().array_file(1), "T/zarr.json");
}

TEST(ZarrDocuments, refuse_types_that_zarr_does_not_have) {
    FileSchema wrong = schema();
    wrong.variables[1].type = raw_type(12);
    try {
        ZarrDocuments(wrong, "x.zarr");
        FAIL() << "not refused";
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "create x.zarr: variable 'T' has dtype void96, which Zarr does not have; "
                                   "use bool, integers, floats or complex numbers");
    }
}

}  // namespace
}  // namespace penstock::formats
