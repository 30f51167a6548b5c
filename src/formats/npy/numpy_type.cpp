// See numpy_type.hpp.
#include "formats/npy/numpy_type.hpp"

#include <bit>
#include <charconv>

#include "formats/json/value.hpp"

namespace penstock::formats {
namespace {

constexpr std::uint64_t kMostItem = std::uint64_t{1} << 30;

std::uint64_t counted(std::string_view digits) {
    std::uint64_t count = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
    if (error != std::errc{} || end != digits.data() + digits.size() || count > kMostItem)
        throw BadDocument{"no number"};
    return count;
}

// Text, raw bytes and times: letter and count. Throws BadDocument.
ElementType lettered_type(char letter, std::string_view rest, const std::string& written) {
    ElementType type{.name = written.substr(written.find(letter)), .kind = letter};
    if (letter == 'M' || letter == 'm') {
        if (!rest.starts_with('8')) throw BadDocument{"times have 8 bytes"};
        type.item_bytes = type.word_bytes = 8;
        return type;
    }
    const std::uint64_t count = counted(rest);
    if (letter == 'V') return raw_type(static_cast<std::uint32_t>(count));
    const std::uint64_t bytes = count * (letter == 'U' ? 4 : 1);
    if (bytes > kMostItem) throw BadDocument{"text too long"};
    type.item_bytes = static_cast<std::uint32_t>(bytes);
    type.word_bytes = letter == 'U' ? 4 : 1;
    return type;
}

}  // namespace

ElementType numpy_type(const std::string& written) {
    std::string_view text = written;
    bool is_big = std::endian::native == std::endian::big;
    if (!text.empty() && std::string_view("<>|=").find(text.front()) != std::string_view::npos) {
        if (text.front() == '<') is_big = false;
        if (text.front() == '>') is_big = true;
        text.remove_prefix(1);
    }
    if (text.size() < 2) throw BadDocument{"no type"};
    const char letter = text.front();
    const std::string_view rest = text.substr(1);
    if (letter == 'b' && rest == "1") return {"bool", 'b', 1, 1, false};
    if (std::string_view("MmSUV").find(letter) != std::string_view::npos) {
        return stored_in(lettered_type(letter, rest, written), is_big);
    }
    if (letter == 'a') return lettered_type('S', rest, "S" + std::string(rest));
    constexpr std::pair<char, const char*> names[] = {{'i', "int"}, {'u', "uint"}, {'f', "float"}, {'c', "complex"}};
    for (const auto& [known, name] : names) {
        ElementType type;
        if (known == letter && type_named(name + std::to_string(8 * counted(rest)), type))
            return stored_in(type, is_big);
    }
    throw BadDocument{"no type of Penstock"};
}

}  // namespace penstock::formats
