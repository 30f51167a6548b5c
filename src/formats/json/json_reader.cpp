// See json_reader.hpp.
#include "formats/json/json_reader.hpp"

#include <algorithm>
#include <charconv>

namespace penstock::formats {
namespace {

[[noreturn]] void refuse(std::string cause) { throw BadDocument{std::move(cause)}; }

bool is_digit(char one) { return one >= '0' && one <= '9'; }
bool is_space(char one) { return one == ' ' || one == '\t' || one == '\n' || one == '\r'; }
bool is_plain(char one) { return one >= 0x20 && one < 0x7F && one != '"' && one != '\\'; }  // in a text

// Appends a code point that is no surrogate.
void append_utf8(std::string& out, std::uint32_t point) {
    const auto more = [&](int shift) { out += static_cast<char>(0x80 | (point >> shift & 0x3F)); };
    if (point < 0x80) {
        out += static_cast<char>(point);
    } else if (point < 0x800) {
        out += static_cast<char>(0xC0 | point >> 6), more(0);
    } else if (point < 0x10000) {
        out += static_cast<char>(0xE0 | point >> 12), more(6), more(0);
    } else {
        out += static_cast<char>(0xF0 | point >> 18), more(12), more(6), more(0);
    }
}

// Length of the valid UTF-8 sequence that begins the text; 0: it is none.
std::size_t sequence_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned first = byte(0);
    if (first < 0x80) return 1;
    const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || length > text.size()) return 0;
    std::uint32_t point = first & (0x7Fu >> length);
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xC0u) != 0x80u) return 0;
        point = point << 6 | (byte(i) & 0x3Fu);
    }
    const bool overlong = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
    return overlong || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000) ? 0 : length;
}

constexpr std::size_t kFewItems = 4;  // of most lists and objects

class Reader {
  public:
    Reader(std::string_view text, const JsonRules& rules) : text_(text), rules_(rules) {}

    Value whole() {
        Value found = value(0);
        skip_space();
        if (at_ != text_.size()) wrong("something follows the value");
        return found;
    }

  private:
    [[noreturn]] void wrong(const std::string& what) const { refuse(what + " at byte " + std::to_string(at_)); }
    bool ended() const { return at_ == text_.size(); }
    char peek() const { return ended() ? '\0' : text_[at_]; }
    bool take(std::string_view word) {
        if (text_.substr(at_, word.size()) != word) return false;
        at_ += word.size();
        return true;
    }
    bool take(char one) {
        if (peek() != one) return false;
        ++at_;
        return true;
    }
    void skip_space() {
        while (!ended() && is_space(text_[at_])) ++at_;
    }

    Value value(std::size_t depth) {
        if (depth > kMostDepth) wrong("more than " + std::to_string(kMostDepth) + " levels");
        if (++values_ > kMostValues) wrong("more than " + std::to_string(kMostValues) + " values");
        skip_space();
        switch (peek()) {
            case '{':
                return {members(depth)};
            case '[':
                return {list(depth)};
            case '"':
                return {string()};
            default:
                break;
        }
        if (is_digit(peek())) return {number()};
        if (take("true")) return {true};
        if (take("false")) return {false};
        if (take("null")) return {};
        if (rules_.names_of_numbers) {
            for (const std::string_view name : {"NaN", "Infinity", "-Infinity"}) {
                if (take(name)) return {std::string(name)};
            }
        }
        return {number()};
    }

    List list(std::size_t depth) {
        ++at_;
        List found;
        skip_space();
        if (take(']')) return found;
        found.reserve(kFewItems);
        do {
            found.push_back(value(depth + 1));
            skip_space();
        } while (take(','));
        if (!take(']')) wrong("a list has no end");
        return found;
    }

    Members members(std::size_t depth) {
        ++at_;
        Members found;
        skip_space();
        if (take('}')) return found;
        found.reserve(kFewItems);
        do {
            skip_space();
            if (peek() != '"') wrong("a name is missing");
            std::string name = string();
            skip_space();
            if (!take(':')) wrong("':' is missing");
            found.push_back({std::move(name), value(depth + 1)});
            skip_space();
        } while (take(','));
        if (!take('}')) wrong("an object has no end");
        check_names(found);
        return found;
    }

    static void check_names(const Members& members) {
        if (members.size() <= kFewItems) return check_few_names(members);
        std::vector<std::string_view> names;
        for (const auto& one : members) names.emplace_back(one.name);
        std::sort(names.begin(), names.end());
        const auto twice = std::adjacent_find(names.begin(), names.end());
        if (twice != names.end()) refuse_name(*twice);
    }

    // Each with each, which takes less than sorting them.
    static void check_few_names(const Members& members) {
        for (std::size_t later = 1; later < members.size(); ++later) {
            const std::string& name = members[later].name;
            const auto first = members.begin(), end = first + static_cast<std::ptrdiff_t>(later);
            if (std::any_of(first, end, [&](const Member& one) { return one.name == name; })) refuse_name(name);
        }
    }
    [[noreturn]] static void refuse_name(std::string_view name) {
        refuse("a name is there twice: " + std::string(name.substr(0, 100)));
    }

    Number number() {
        const std::size_t from = at_;
        const auto digits = [&] {
            const std::size_t first = at_;
            while (is_digit(peek())) ++at_;
            if (at_ == first) wrong("no value");
        };
        take('-');
        if (!take('0')) digits();
        if (take('.')) digits();
        if (take('e') || take('E')) {
            if (!take('+')) take('-');
            digits();
        }
        return {std::string(text_.substr(from, at_ - from))};
    }

    std::string string() {
        ++at_;
        std::string found;
        while (true) {
            const std::size_t from = at_;
            while (!ended() && is_plain(text_[at_])) ++at_;
            found += text_.substr(from, at_ - from);
            if (ended()) wrong("a text has no end");
            const char one = text_[at_];
            if (one == '"') break;
            if (static_cast<unsigned char>(one) < 0x20) wrong("a control character in a text");
            if (one == '\\') {
                ++at_;
                escape(found);
                continue;
            }
            const std::size_t length = sequence_length(text_.substr(at_));
            if (length == 0) wrong("bytes that are not UTF-8");
            found += text_.substr(at_, length);
            at_ += length;
        }
        ++at_;
        return found;
    }

    void escape(std::string& out) {
        constexpr std::string_view letters = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
        const char one = peek();
        ++at_;
        if (const std::size_t which = letters.find(one); one != '\0' && which != std::string_view::npos) {
            out += meant[which];
            return;
        }
        if (one != 'u') wrong("an escape that JSON does not have");
        std::uint32_t point = unit();
        if (point >= 0xD800 && point < 0xDC00 && take("\\u")) {
            const std::uint32_t low = unit();
            if (low < 0xDC00 || low > 0xDFFF) wrong("half of a character");
            point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
        }
        if (point >= 0xD800 && point < 0xE000) wrong("half of a character");
        append_utf8(out, point);
    }

    std::uint32_t unit() {
        std::uint32_t found = 0;
        const std::string_view digits = text_.substr(std::min(at_, text_.size()), 4);
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), found, 16);
        if (digits.size() != 4 || end != digits.data() + 4 || error != std::errc{}) wrong("an escape without 4 digits");
        at_ += 4;
        return found;
    }

    std::string_view text_;
    JsonRules rules_;
    std::size_t at_ = 0;
    std::size_t values_ = 0;
};

}  // namespace

const Value* Value::member(std::string_view name) const noexcept {
    const Members* all = members();
    if (all == nullptr) return nullptr;
    const auto found = std::find_if(all->begin(), all->end(), [&](const auto& one) { return one.name == name; });
    return found == all->end() ? nullptr : &found->value;
}

std::optional<std::int64_t> Value::integer() const noexcept {
    const Number* written = number();
    if (written == nullptr) return std::nullopt;
    std::int64_t found = 0;
    const char* last = written->text.data() + written->text.size();
    const auto [end, error] = std::from_chars(written->text.data(), last, found);
    return end == last && error == std::errc{} ? std::optional(found) : std::nullopt;
}

std::optional<std::vector<std::int64_t>> integers(const List& list, std::int64_t least) {
    std::vector<std::int64_t> found;
    for (const Value& one : list) {
        const auto number = one.integer();
        if (!number || *number < least) return std::nullopt;
        found.push_back(*number);
    }
    return found;
}

Value read_json(std::string_view text, const JsonRules& rules) { return Reader(text, rules).whole(); }

}  // namespace penstock::formats
