// Headers that are read in one pass say what the parser of all headers says, or nothing.
#include "formats/safetensors/plain_header.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "formats/parsers.hpp"
#include "formats/samples_rig.hpp"
#include "penstock/error.hpp"

namespace penstock::formats {
namespace {

using testing::MemorySource;

constexpr std::string_view kHeader =
    R"({"__metadata__":{"format":"pt","by":"a test"},"model.layers.0.weight":{"dtype":"F32","shape":[2,3],)"
    R"("data_offsets":[0,24]}, "b" : {"data_offsets":[40,44],"shape":[],"dtype":"I32"},)"
    R"("empty":{"dtype":"BF16","shape":[0,7],"data_offsets":[24,24]},"c":{"dtype":"U8","shape":[16],)"
    "\n\t\"data_offsets\":[24,40]}}   ";
constexpr std::uint64_t kData = 44;

std::string plain(std::string_view text) {
    PlainHeader found;
    if (!found.read(text, kData)) return "";
    std::string told;
    for (const PlainTensor& one : found.tensors()) {
        told += std::string(one.name) + " " + one.type + " " + std::to_string(8 + text.size() + one.first);
        for (const std::int64_t extent : found.shape(one)) told += "," + std::to_string(extent);
        told += "\n";
    }
    return told;
}

std::string by_the_parser(std::string_view text) {
    const MemorySource source(testing::safetensors_of(std::string(text), std::string(kData, 'x')));
    std::string told;
    try {
        for (const StoredDataset& one : parse_safetensors(source)) {
            if (!one.refusal.empty()) return "refused";
            told += one.name + " " + one.type.name + " " + std::to_string(one.offset_bytes);
            for (const std::int64_t extent : one.grid.shape) told += "," + std::to_string(extent);
            told += "\n";
        }
    } catch (const Error&) {
        return "damaged";
    }
    return told;
}

TEST(PlainHeader, says_what_the_parser_says) {
    EXPECT_EQ(plain(kHeader), by_the_parser(kHeader));
    EXPECT_NE(plain(kHeader), "");
    PlainHeader found;
    ASSERT_TRUE(found.read(kHeader, kData));
    EXPECT_TRUE(found.has_metadata());
    EXPECT_EQ(found.tensors()[1].name, "empty") << "in the order of their bytes";
    EXPECT_FALSE(PlainHeader().read(kHeader, kData + 1)) << "the file has more";
}

TEST(PlainHeader, ends_with_any_padding_and_with_nothing_else) {
    const std::string header(kHeader.substr(0, kHeader.find_last_of('}') + 1)), padding(36 << 10, ' ');
    for (const std::string& end : {std::string(), std::string(" "), padding, padding + "\n\t ", "\n" + padding}) {
        EXPECT_NE(plain(header + end), "") << end.size();
        EXPECT_EQ(plain(header + end), by_the_parser(header + end)) << end.size();
    }
    for (const char* end : {"x", " x", "  }", " {}"}) EXPECT_EQ(plain(header + end), "") << end;
    EXPECT_EQ(plain(header + padding + "x"), "");
    EXPECT_EQ(plain(header + padding + std::string(1, '\0')), "");
}

TEST(PlainHeader, of_any_damage_says_what_the_parser_says_or_nothing) {
    std::mt19937 random(3);
    const std::string letters = R"({}[]",:0123456789 \eE+-.tTnull)" "\x01\x7f\xc3";
    int read = 0;
    for (int turn = 0; turn < 20'000; ++turn) {
        std::string text(kHeader);
        for (std::uint32_t left = 1 + random() % 3; left-- > 0;) {
            const std::size_t at = random() % text.size();
            const char letter = letters[random() % letters.size()];
            if (random() % 3 == 0) text.erase(at, 1 + random() % 2);
            else if (random() % 2 == 0) text.insert(at, 1, letter);
            else text[at] = letter;
        }
        const std::string found = plain(text);
        if (found.empty()) continue;
        ++read;
        ASSERT_EQ(found, by_the_parser(text)) << text;
    }
    EXPECT_GT(read, 500);
}

TEST(PlainHeader, leaves_what_is_not_plain_to_the_parser) {
    const auto with = [](const std::string& from, const std::string& to) {
        std::string text(kHeader);
        return plain(text.replace(text.find(from), from.size(), to));
    };
    EXPECT_NE(with("pt", "np"), "");
    EXPECT_EQ(with("pt", "\\u0070"), "") << "an escape";
    EXPECT_EQ(with("pt\"", "p\xc3\xa9\""), "") << "a letter beyond ASCII";
    EXPECT_EQ(with("\"by\"", "\"format\""), "") << "a name twice";
    EXPECT_EQ(with("\"dtype\":\"F32\"", "\"dtype\":\"F32\",\"dtype\":\"F32\""), "");
    EXPECT_EQ(with("\"dtype\":\"F32\"", "\"dtype\":\"F32\",\"note\":1"), "") << "a member that the format has not";
    EXPECT_EQ(plain(" " + std::string(kHeader)), "") << "files of the format begin otherwise";
    EXPECT_EQ(with("F32", "F4"), "") << "no plain bytes";
    EXPECT_EQ(with("[2,3]", "[2,03]"), "") << "no number of JSON";
    EXPECT_EQ(with("[2,3]", "[2,9223372036854775807]"), "");
    EXPECT_EQ(with("[2,3]", "[4294967296,4294967296]"), "") << "more bytes than 64 bits count";
    EXPECT_EQ(with("[24,40]", "[25,41]"), "") << "a gap, and an overlap";
    EXPECT_EQ(with("[24,40]", "[24,41]"), "") << "more bytes than the shape has";
}

}  // namespace
}  // namespace penstock::formats
