// JSON of strangers: what RFC 8259 allows is read, everything else is refused with its place.
#include "formats/json/json_reader.hpp"

#include <gtest/gtest.h>

namespace penstock::formats {
namespace {

std::string cause(std::string_view text, const JsonRules& rules = {}) {
    try {
        read_json(text, rules);
        return "";
    } catch (const BadDocument& bad) {
        return bad.cause;
    }
}

TEST(JsonReader, reads_every_kind_of_value) {
    const Value found = read_json(R"( {"a":[1,-2,0.5e+3,true,false,null],"b":"x\u00e9\ud83d\ude00\n\"","c":{}} )");
    const List& list = *found.member("a")->list();
    EXPECT_EQ(list[0].integer(), 1);
    EXPECT_EQ(list[1].integer(), -2);
    EXPECT_EQ(list[2].integer(), std::nullopt);
    EXPECT_EQ(list[2].number()->text, "0.5e+3");
    EXPECT_TRUE(*list[3].boolean());
    EXPECT_FALSE(*list[4].boolean());
    EXPECT_TRUE(list[5].is_null());
    EXPECT_EQ(*found.member("b")->text(), "x\xc3\xa9\xf0\x9f\x98\x80\n\"");
    EXPECT_TRUE(found.member("c")->members()->empty());
    EXPECT_EQ(found.member("d"), nullptr);
    EXPECT_EQ(read_json("9223372036854775807").integer(), std::int64_t{9223372036854775807});
    EXPECT_EQ(read_json("9223372036854775808").integer(), std::nullopt);
}

TEST(JsonReader, refuses_what_is_no_json) {
    for (const char* text : {"",
                             " ",
                             "{",
                             "[1,]",
                             "{\"a\":1,}",
                             "{a:1}",
                             "[1 2]",
                             "01",
                             "1.",
                             ".5",
                             "+1",
                             "-",
                             "1e",
                             "nul",
                             "\"",
                             "\"\\x\"",
                             "\"\\u12\"",
                             "\"\\ud800\"",
                             "\"\\udc00\"",
                             "\"\\ud800\\u0041\"",
                             "\"a\nb\"",
                             "\"\x80\"",
                             "\"\xc0\xaf\"",
                             "\"\xed\xa0\x80\"",
                             "\"\xf5\x80\x80\x80\"",
                             "1 2",
                             "NaN",
                             "[NaN]",
                             "\xef\xbb\xbf{}"}) {
        EXPECT_NE(cause(text), "") << text;
    }
}

TEST(JsonReader, refuses_a_name_that_is_there_twice) {
    EXPECT_NE(cause(R"({"a":1,"b":{"c":1,"c":2}})").find("twice: c"), std::string::npos);
    EXPECT_NE(cause(R"({"a":1,"\u0061":2})").find("twice: a"), std::string::npos);
    EXPECT_NE(cause(R"({"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"c":2})").find("twice: c"), std::string::npos);
}

TEST(JsonReader, keeps_what_stands_between_the_plain_characters_of_a_text) {
    const Value found = read_json(R"(["plain\tand \u00e9 then\\","","\n","~"])");
    const List& list = *found.list();
    EXPECT_EQ(*list[0].text(), "plain\tand \xc3\xa9 then\\");
    EXPECT_EQ(*list[1].text(), "");
    EXPECT_EQ(*list[2].text(), "\n");
    EXPECT_EQ(*list[3].text(), "~");
    EXPECT_EQ(*read_json("\"a\xc3\xa9z\x7f\"").text(), "a\xc3\xa9z\x7f");
}

TEST(JsonReader, bounds_its_depth_and_its_values) {
    const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
    EXPECT_EQ(cause(nested(kMostDepth)), "");
    EXPECT_NE(cause(nested(100'000)).find("levels"), std::string::npos);
    std::string many = "[0";
    for (std::size_t i = 0; i < kMostValues; ++i) many += ",0";
    EXPECT_NE(cause(many + "]").find("values"), std::string::npos);
}

TEST(JsonReader, takes_names_of_numbers_where_it_is_told) {
    const Value found = read_json("[NaN,-Infinity]", {.names_of_numbers = true});
    EXPECT_EQ(*(*found.list())[0].text(), "NaN");
    EXPECT_EQ(*(*found.list())[1].text(), "-Infinity");
}

}  // namespace
}  // namespace penstock::formats
