// See encoder.hpp.
#include "formats/create/hdf5/encoder.hpp"

#include <bit>
#include <string>

#include "penstock/error.hpp"

namespace penstock::formats {
namespace {

// Class and version of a datatype message, its 24 bits, and the bytes of an element.
Hdf5Encoder datatype_begin(unsigned type_class, std::uint32_t bits, std::uint32_t bytes) {
    Hdf5Encoder out;
    out.number(0x10U | type_class, 1).number(bits, 3).number(bytes, 4);
    return out;
}

bool is_big_endian(const ElementType& type) {
    return type.word_bytes > 1 && type.is_foreign_order != (std::endian::native == std::endian::big);
}

std::vector<std::byte> integer_bytes(const ElementType& type) {
    const std::uint32_t sign = type.kind == 'i' ? 8 : 0;
    Hdf5Encoder out = datatype_begin(0, sign | (is_big_endian(type) ? 1U : 0U), type.item_bytes);
    return out.number(0, 2).number(8 * type.item_bytes, 2).take();
}

struct FloatShape {
    unsigned exponent_bits, mantissa_bits;
};

std::vector<std::byte> float_bytes(const ElementType& type, std::uint32_t bytes, FloatShape shape) {
    const std::uint32_t sign_bit = 8 * bytes - 1, implied_one = 0x20;
    Hdf5Encoder out = datatype_begin(1, (sign_bit << 8) | implied_one | (is_big_endian(type) ? 1U : 0U), bytes);
    out.number(0, 2).number(8 * bytes, 2);
    out.number(shape.mantissa_bits, 1).number(shape.exponent_bits, 1).number(0, 1).number(shape.mantissa_bits, 1);
    return out.number((1U << (shape.exponent_bits - 1)) - 1, 4).take();
}

FloatShape float_shape(std::uint32_t bytes) {
    if (bytes == 2) return {5, 10};
    return bytes == 4 ? FloatShape{8, 23} : FloatShape{11, 52};
}

struct CompoundMember {
    std::string_view name;
    std::uint32_t offset;
    std::vector<std::byte> type;
};

std::vector<std::byte> compound_bytes(std::uint32_t bytes, std::span<const CompoundMember> members) {
    Hdf5Encoder out = datatype_begin(6, static_cast<std::uint32_t>(members.size()), bytes);
    for (const CompoundMember& member : members) {
        out.padded_text(member.name).number(member.offset, 4);
        out.number(0, 8).number(0, 8).number(0, 8).number(0, 4);  // no dimensions of the member's own
        out.copy(member.type);
    }
    return out.take();
}

// As h5py stores them: an enumeration of int8.
std::vector<std::byte> bool_bytes() {
    ElementType byte;
    type_named("int8", byte);
    Hdf5Encoder out = datatype_begin(8, 2, 1);
    return out.copy(integer_bytes(byte)).padded_text("FALSE").padded_text("TRUE").number(0, 1).number(1, 1).take();
}

// As h5py stores them: a compound of r and i.
std::vector<std::byte> complex_bytes(const ElementType& type) {
    const std::uint32_t half = type.item_bytes / 2;
    const std::vector<std::byte> part = float_bytes(type, half, float_shape(half));
    const CompoundMember members[] = {{"r", 0, part}, {"i", half, part}};
    return compound_bytes(type.item_bytes, members);
}

}  // namespace

Hdf5Encoder& Hdf5Encoder::number(std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) bytes_.push_back(static_cast<std::byte>(value >> (8 * i)));
    return *this;
}

Hdf5Encoder& Hdf5Encoder::text(std::string_view text) { return copy(std::as_bytes(std::span(text))); }

Hdf5Encoder& Hdf5Encoder::padded_text(std::string_view text) {
    this->text(text);
    bytes_.resize(bytes_.size() + rounded_up(text.size() + 1, 8) - text.size());
    return *this;
}

Hdf5Encoder& Hdf5Encoder::copy(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
}

Hdf5Encoder& Hdf5Encoder::pad_to(std::size_t multiple) {
    bytes_.resize(rounded_up(bytes_.size(), multiple));
    return *this;
}

void store_number(std::span<std::byte> into, std::uint64_t value) {
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = static_cast<std::byte>(value >> (8 * i));
}

std::uint64_t rounded_up(std::uint64_t value, std::uint64_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

std::uint64_t element_count(std::span<const std::uint64_t> shape) {
    std::uint64_t count = 1;
    for (const std::uint64_t length : shape)
        if (__builtin_mul_overflow(count, length, &count))
            throw Error(ErrorCode::unsupported, "create", "a dataset has more than 2^64 elements");
    return count;
}

std::vector<std::byte> datatype_bytes(const ElementType& type, TextPadding padding) {
    switch (type.kind) {
        case 'i':
        case 'u':
            return integer_bytes(type);
        case 'f':
            return float_bytes(type, type.item_bytes, float_shape(type.item_bytes));
        case 'c':
            return complex_bytes(type);
        case 'b':
            return bool_bytes();
        case 'S':
            return datatype_begin(3, static_cast<std::uint32_t>(padding), type.item_bytes).take();
        case 'E':
            if (type.name == "bfloat16") return float_bytes(type, 2, {8, 7});
            break;
        default:
            break;
    }
    throw Error(ErrorCode::unsupported, "create", "a file of HDF5 has no " + type.name + " here",
                "store it as integers of the same size");
}

std::vector<std::byte> reference_type_bytes() { return datatype_begin(7, 0, 8).take(); }

std::vector<std::byte> reference_list_type_bytes() {
    return datatype_begin(9, 0, 16).copy(reference_type_bytes()).take();
}

std::vector<std::byte> text_type_bytes() {
    constexpr std::uint32_t kIsText = 1, kUtf8 = 1U << 8;
    ElementType byte;
    type_named("uint8", byte);
    return datatype_begin(9, kIsText | kUtf8, 16).copy(integer_bytes(byte)).take();
}

std::vector<std::byte> use_type_bytes() {
    ElementType number;
    type_named("uint32", number);
    number.is_foreign_order = std::endian::native == std::endian::big;
    const CompoundMember members[] = {{"dataset", 0, reference_type_bytes()}, {"dimension", 8, integer_bytes(number)}};
    return compound_bytes(kUseBytes, members);
}

}  // namespace penstock::formats
