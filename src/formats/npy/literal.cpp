// See literal.hpp.
#include "formats/npy/literal.hpp"

#include <algorithm>

namespace penstock::formats {
namespace {

class LiteralReader {
  public:
    explicit LiteralReader(std::string_view text) : text_(text) {}

    Value whole() {
        Value found = value(0);
        skip_space();
        if (at_ != text_.size()) wrong("something follows the value");
        return found;
    }

  private:
    [[noreturn]] void wrong(const std::string& what) const {
        throw BadDocument{what + " at character " + std::to_string(at_)};
    }
    char peek() const { return at_ == text_.size() ? '\0' : text_[at_]; }
    bool take(std::string_view word) {
        if (text_.substr(at_, word.size()) != word) return false;
        at_ += word.size();
        return true;
    }
    void skip_space() {
        while (at_ < text_.size() && std::string_view(" \t\n\r\f").find(text_[at_]) != std::string_view::npos) ++at_;
    }

    Value value(std::size_t depth) {
        if (depth > kMostDepth) wrong("more than " + std::to_string(kMostDepth) + " levels");
        skip_space();
        if (peek() == '\'' || peek() == '"') return {string()};
        if (take("{")) return {members(depth)};
        if (take("[")) return {items(']', depth).first};
        if (take("(")) {
            auto [found, is_one] = items(')', depth);
            if (is_one) return std::move(found.front());
            return {Tuple{std::move(found)}};
        }
        if (take("True")) return {true};
        if (take("False")) return {false};
        if (take("None")) return {};
        return {number()};
    }

    // (the items, whether it is one without a comma).
    std::pair<List, bool> items(char end, std::size_t depth) {
        List found;
        bool comma = true;
        while (true) {
            skip_space();
            if (peek() == end) break;
            if (!comma) wrong("',' is missing");
            found.push_back(value(depth + 1));
            skip_space();
            comma = take(",");
        }
        ++at_;
        return {std::move(found), found.size() == 1 && !comma};
    }

    Members members(std::size_t depth) {
        Members found;
        bool comma = true;
        while (true) {
            skip_space();
            if (take("}")) return found;
            if (!comma) wrong("',' is missing");
            if (peek() != '\'' && peek() != '"') wrong("a key is no text");
            std::string key = string();
            skip_space();
            if (!take(":")) wrong("':' is missing");
            if (std::any_of(found.begin(), found.end(), [&](const auto& one) { return one.name == key; })) {
                wrong("a key is there twice");
            }
            found.push_back({std::move(key), value(depth + 1)});
            skip_space();
            comma = take(",");
        }
    }

    Number number() {
        const std::size_t from = at_;
        take("-");
        const std::size_t first = at_;
        while (peek() >= '0' && peek() <= '9') ++at_;
        const std::string_view digits = text_.substr(first, at_ - first);
        if (digits.empty() || (digits.size() > 1 && digits.front() == '0')) wrong("no value");
        Number found{std::string(text_.substr(from, at_ - from))};
        take("L");
        return found;
    }

    // Names of types and fields need no more escapes than these.
    std::string string() {
        const char quote = text_[at_++];
        std::string found;
        while (peek() != quote) {
            if (at_ == text_.size() || peek() == '\n') wrong("a text has no end");
            if (peek() == '\\') {
                ++at_;
                if (peek() != '\\' && peek() != '\'' && peek() != '"') wrong("an escape that is not known");
            }
            found += text_[at_++];
        }
        ++at_;
        return found;
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace

Value read_literal(std::string_view text) { return LiteralReader(text).whole(); }

}  // namespace penstock::formats
