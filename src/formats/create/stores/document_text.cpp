// See document_text.hpp.
#include "formats/create/stores/document_text.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/json.hpp"

namespace penstock::formats {
namespace {

template <typename Number>
Number value_at(const NewAttribute& one, std::size_t index) {
    Number value;
    std::memcpy(&value, one.bytes.data() + index * sizeof value, sizeof value);
    return value;
}

std::string value_text(const NewAttribute& one, std::size_t index) {
    if (one.type.name == "int32") return std::to_string(value_at<std::int32_t>(one, index));
    return number_text(number_of(one, index));
}

}  // namespace

std::string list_text(std::span<const std::uint64_t> numbers) {
    std::string text = "[";
    for (const std::uint64_t one : numbers) text += (text.size() == 1 ? "" : ",") + std::to_string(one);
    return text + "]";
}

std::string number_text(double value) {
    if (std::isnan(value)) return "\"NaN\"";
    if (std::isinf(value)) return value < 0 ? "\"-Infinity\"" : "\"Infinity\"";
    std::array<char, 40> room{};
    const auto ended = std::to_chars(room.data(), room.data() + room.size(), value);
    std::string text(room.data(), ended.ptr);
    if (text.find_first_of(".en") == std::string::npos) text += ".0";
    return text;
}

double number_of(const NewAttribute& one, std::size_t index) {
    if (one.type.name == "int32") return value_at<std::int32_t>(one, index);
    return one.type.name == "float32" ? value_at<float>(one, index) : value_at<double>(one, index);
}

std::string attribute_text(const NewAttribute& one) {
    if (one.type.kind == 'S') {
        return base::json_quoted({reinterpret_cast<const char*>(one.bytes.data()), one.bytes.size()});
    }
    if (one.shape.empty()) return value_text(one, 0);
    std::string text = "[";
    for (std::size_t i = 0; i < one.bytes.size() / one.type.item_bytes; ++i) {
        text += (i == 0 ? "" : ",") + value_text(one, i);
    }
    return text + "]";
}

std::string dimensions_text(const FileSchema& schema, const NewVariable& variable) {
    std::string names = "[";
    for (const std::size_t dimension : variable.dimensions) {
        names += (names.size() == 1 ? "" : ",") + base::json_quoted(schema.dimensions[dimension].name);
    }
    return names + "]";
}

}  // namespace penstock::formats
