// Fill values of Zarr as bytes: exactly what the store's own writers would have stored. See zarr_array.hpp.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "formats/zarr/zarr_array.hpp"

namespace penstock::formats {
namespace {

[[noreturn]] void not_understood(const ElementType& type) {
    throw BadDocument{"its fill value is not understood here as " + type.name};
}

// The low `bytes` bytes of a number, in this machine's order.
std::vector<std::byte> word_of(std::uint64_t number, std::size_t bytes) {
    std::vector<std::byte> word(bytes);
    for (std::size_t i = 0; i < bytes; ++i) {
        const std::size_t place = std::endian::native == std::endian::little ? i : bytes - 1 - i;
        word[place] = static_cast<std::byte>(number >> 8 * i & 0xff);
    }
    return word;
}

template <typename T>
bool read_number(const std::string& text, T& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size();
}

std::uint64_t integer_bits(const Value& value, const ElementType& type) {
    if (value.number() == nullptr) not_understood(type);
    std::string text = value.number()->text;
    if (text.ends_with(".0")) text.resize(text.size() - 2);  // old writers say 0.0 for integers
    const std::size_t bits = 8 * type.item_bytes;
    if (type.kind == 'i' || type.kind == 'M' || type.kind == 'm') {
        std::int64_t number = 0;
        if (!read_number(text, number)) not_understood(type);
        if (bits < 64 && (number < -(std::int64_t{1} << (bits - 1)) || number >= std::int64_t{1} << (bits - 1)))
            not_understood(type);
        return static_cast<std::uint64_t>(number);
    }
    std::uint64_t number = 0;
    if (!read_number(text, number) || (bits < 64 && number >> bits != 0)) not_understood(type);
    return number;
}

double number_of(const Value& value, const ElementType& type) {
    double number = 0;
    if (value.number() != nullptr && read_number(value.number()->text, number)) return number;
    const std::string text = value.text() == nullptr ? "" : *value.text();
    if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (text == "Infinity") return std::numeric_limits<double>::infinity();
    if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
    not_understood(type);
}

std::vector<std::byte> float_of(const Value& value, const ElementType& type, std::size_t bytes) {
    if (value.text() != nullptr && value.text()->starts_with("0x")) {
        std::uint64_t bits = 0;
        const std::string digits = value.text()->substr(2);
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
        const bool is_whole =
            error == std::errc{} && end == digits.data() + digits.size() && digits.size() == 2 * bytes;
        if (!is_whole) not_understood(type);
        return word_of(bits, bytes);
    }
    const double number = number_of(value, type);
    if (bytes == 8) return word_of(std::bit_cast<std::uint64_t>(number), 8);
    if (bytes == 4) return word_of(std::bit_cast<std::uint32_t>(static_cast<float>(number)), 4);
    if (number == 0 && !std::signbit(number) && type.name != "float8_e8m0fnu") return word_of(0, bytes);
    if (type.name == "float16" && std::isnan(number)) return word_of(0x7e00, 2);
    if (type.name == "bfloat16" && std::isnan(number)) return word_of(0x7fc0, 2);
    not_understood(type);  // what needs a rounding of ours
}

}  // namespace

std::vector<std::byte> fill_of(const Value& value, const ElementType& type) {
    const std::size_t bytes = type.item_bytes;
    const bool* truth = value.boolean();
    const bool is_nothing = value.is_null() || (value.number() != nullptr && value.number()->text == "0") ||
                            (value.text() != nullptr && value.text()->empty());
    switch (type.kind) {
        case 'b':
            if (truth != nullptr) return word_of(*truth ? 1 : 0, 1);
            if (value.is_null()) return {};
            return word_of(integer_bits(value, {"uint8", 'u', 1, 1, false}) != 0, 1);
        case 'i':
        case 'u':
            return value.is_null() ? std::vector<std::byte>{} : word_of(integer_bits(value, type), bytes);
        case 'M':
        case 'm':
            if (value.is_null()) return {};
            if (value.text() != nullptr && *value.text() == "NaT") return word_of(std::uint64_t{1} << 63, 8);
            return word_of(integer_bits(value, type), 8);
        case 'f':
        case 'E':
            return value.is_null() ? std::vector<std::byte>{} : float_of(value, type, bytes);
        case 'c': {
            if (value.is_null()) return {};
            if (value.list() == nullptr || value.list()->size() != 2) not_understood(type);
            std::vector<std::byte> both = float_of(value.list()->front(), type, bytes / 2);
            const std::vector<std::byte> imaginary = float_of(value.list()->back(), type, bytes / 2);
            both.insert(both.end(), imaginary.begin(), imaginary.end());
            return both;
        }
        default:
            break;
    }
    const std::string text = value.text() == nullptr ? "" : *value.text();
    const bool is_zeros = !text.empty() && text.find_first_not_of("A=") == std::string::npos;  // in base 64
    if (!is_nothing && !(is_zeros && type.kind != 'U')) not_understood(type);
    return {};
}

}  // namespace penstock::formats
