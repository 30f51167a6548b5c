// Json: an append-only writer of one JSON value, for evidence, surveys and every other thing Penstock says in JSON.
//
// It writes what it is told in that order and places the commas; nothing is held but the text. The text is always valid
// JSON in valid UTF-8 as long as begins and ends pair up: control characters are escaped, bytes that are no UTF-8
// become U+FFFD (file names may hold any byte), numbers that are not finite become null.
//
//     Json json;
//     json.begin_object().field("bytes", 4096u).key("paths").begin_array().value("uring").end_array().end_object();
//     return std::move(json).text();
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace penstock::base {

class Json {
  public:
    Json& begin_object() { return open('{'); }
    Json& end_object() { return shut('}'); }
    Json& begin_array() { return open('['); }
    Json& end_array() { return shut(']'); }

    // In an object, before each value.
    Json& key(std::string_view name);

    Json& value(std::string_view text);
    Json& value(const char* text) { return value(std::string_view(text)); }
    Json& value(double number);
    Json& value(bool truth) { return plain(truth ? "true" : "false"); }
    template <std::integral Integer>
    Json& value(Integer number) { return plain(std::to_string(number)); }
    Json& null() { return plain("null"); }
    // Text that is JSON already, e.g. another writer's.
    Json& raw(std::string_view json) { return plain(json); }

    template <typename Value>
    Json& field(std::string_view name, const Value& content) { return key(name).value(content); }

    const std::string& text() const& noexcept { return text_; }
    std::string text() && noexcept { return std::move(text_); }

  private:
    Json& open(char bracket);
    Json& shut(char bracket);
    Json& plain(std::string_view json);
    void separate();

    std::string text_;
    bool comma_ = false;  // the next value or key needs a comma before it
};

// `text` as a JSON string, quotes included.
std::string json_quoted(std::string_view text);

}  // namespace penstock::base
