// See json.hpp. UTF-8 is checked here because a file name may be any sequence of bytes. Overlong forms, surrogates and
// values past U+10FFFF are invalid too, and each invalid byte becomes one U+FFFD.
#include "base/json.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>

namespace penstock::base {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

unsigned byte_at(std::string_view text, std::size_t i) { return static_cast<unsigned char>(text[i]); }

// Returns the length of the valid UTF-8 sequence at `i`, or 0 if it is invalid (Unicode 15, table 3-7).
std::size_t sequence_length(std::string_view text, std::size_t i) {
    const unsigned first = byte_at(text, i);
    if (first < 0x80) return 1;
    const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || i + length > text.size()) return 0;
    unsigned low = 0x80, high = 0xBF;  // limits of the second byte
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
    if (byte_at(text, i + 1) < low || byte_at(text, i + 1) > high) return 0;
    for (std::size_t k = 2; k < length; ++k) {
        if ((byte_at(text, i + k) & 0xC0u) != 0x80u) return 0;
    }
    return length;
}

void append_ascii(std::string& out, char c) {
    constexpr std::string_view digits = "0123456789abcdef";
    switch (c) {
        case '"': out += "\\\""; return;
        case '\\': out += "\\\\"; return;
        case '\n': out += "\\n"; return;
        case '\r': out += "\\r"; return;
        case '\t': out += "\\t"; return;
        default: break;
    }
    const auto code = static_cast<unsigned char>(c);
    if (code >= 0x20 && code != 0x7F) {
        out += c;
        return;
    }
    out += "\\u00";
    out += digits[code >> 4];
    out += digits[code & 15];
}

}  // namespace

std::string json_quoted(std::string_view text) {
    std::string out = "\"";
    out.reserve(text.size() + 2);
    for (std::size_t i = 0; i < text.size();) {
        const std::size_t length = sequence_length(text, i);
        if (length == 0) {
            out += kReplacement;
        } else if (length == 1) {
            append_ascii(out, text[i]);
        } else {
            out += text.substr(i, length);
        }
        i += length == 0 ? 1 : length;
    }
    out += '"';
    return out;
}

void Json::separate() {
    if (comma_) text_ += ',';
    comma_ = true;
}

Json& Json::open(char bracket) {
    separate();
    text_ += bracket;
    comma_ = false;
    return *this;
}

Json& Json::shut(char bracket) {
    text_ += bracket;
    comma_ = true;
    return *this;
}

Json& Json::plain(std::string_view json) {
    separate();
    text_ += json;
    return *this;
}

Json& Json::key(std::string_view name) {
    separate();
    text_ += json_quoted(name);
    text_ += ':';
    comma_ = false;
    return *this;
}

Json& Json::value(std::string_view text) { return plain(json_quoted(text)); }

Json& Json::value(double number) {
    if (!std::isfinite(number)) return null();
    std::array<char, 32> digits{};  // the shortest form of a double has at most 24 characters
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    return plain(std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data())));
}

}  // namespace penstock::base
