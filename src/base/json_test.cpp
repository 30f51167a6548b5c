// The JSON writer produces valid JSON from any input.
#include "base/json.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

namespace penstock::base {
namespace {

TEST(Json, commas_stand_between_values_and_nowhere_else) {
    Json json;
    json.begin_object().field("a", 1).key("list").begin_array().value("x").value(true).begin_object().end_object();
    json.null().end_array().field("b", "y").key("raw").raw("{\"z\":1}").key("none").begin_array().end_array();
    json.end_object();
    EXPECT_EQ(json.text(), R"({"a":1,"list":["x",true,{},null],"b":"y","raw":{"z":1},"none":[]})");
}

TEST(Json, integers_keep_all_their_digits) {
    Json json;
    json.begin_array().value(std::numeric_limits<std::uint64_t>::max()).value(std::numeric_limits<std::int64_t>::min());
    json.end_array();
    EXPECT_EQ(json.text(), "[18446744073709551615,-9223372036854775808]");
}

TEST(Json, numbers_that_are_not_finite_become_null) {
    Json json;
    json.begin_array().value(0.5).value(std::numeric_limits<double>::infinity());
    json.value(std::numeric_limits<double>::quiet_NaN()).value(-0.25).value(1e300).end_array();
    EXPECT_EQ(json.text(), "[0.5,null,null,-0.25,1e+300]");
}

TEST(JsonQuoted, control_characters_quotes_and_backslashes_are_escaped) {
    EXPECT_EQ(json_quoted("a\"b\\c\n\r\t"), R"("a\"b\\c\n\r\t")");
    EXPECT_EQ(json_quoted(std::string("\0\x01\x1f\x7f", 4)), R"("\u0000\u0001\u001f\u007f")");
}

TEST(JsonQuoted, valid_utf8_passes_unchanged) {
    const std::string text = "gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x8C\x8A";
    EXPECT_EQ(json_quoted(text), "\"" + text + "\"");
}

TEST(JsonQuoted, each_byte_that_is_no_utf8_becomes_one_replacement) {
    const std::string bad = "\xEF\xBF\xBD";
    EXPECT_EQ(json_quoted("a\xFFz"), "\"a" + bad + "z\"");
    EXPECT_EQ(json_quoted("\xC3"), "\"" + bad + "\"");                  // cut short
    EXPECT_EQ(json_quoted("\xC0\xAF"), "\"" + bad + bad + "\"");        // overlong '/'
    EXPECT_EQ(json_quoted("\xED\xA0\x80"), "\"" + bad + bad + bad + "\"");  // surrogate
    EXPECT_EQ(json_quoted("\xF4\x90\x80\x80"), "\"" + bad + bad + bad + bad + "\"");  // past U+10FFFF
}

}  // namespace
}  // namespace penstock::base
