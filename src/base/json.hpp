// Json: an append-only writer of one JSON value, for evidence, surveys and everything else that Penstock prints as
// JSON.
//
// It writes values in the order of the calls and adds the commas. It holds only the text. The text is valid JSON in
// valid UTF-8 if every begin has its end. Control characters are escaped. Bytes that are not UTF-8 become U+FFFD,
// because file names may contain any byte. Numbers that are not finite become null.
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

    // Requires: the caller is in an object, and writes the value next.
    Json& key(std::string_view name);

    Json& value(std::string_view text);
    Json& value(const char* text) { return value(std::string_view(text)); }
    Json& value(double number);
    Json& value(bool truth) { return plain(truth ? "true" : "false"); }
    template <std::integral Integer>
    Json& value(Integer number) { return plain(std::to_string(number)); }
    Json& null() { return plain("null"); }
    // Appends text that is already JSON, for example that of another writer.
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

// Returns `text` as a JSON string with its quotes.
std::string json_quoted(std::string_view text);

}  // namespace penstock::base
