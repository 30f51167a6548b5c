// The types of elements that headers of safetensors name.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace penstock::formats {

struct TensorType {
    std::string_view code;
    const char* type;  // null: its elements have no plain bytes
    std::uint64_t bits;
};
inline constexpr TensorType kTensorTypes[] = {
    {"BOOL", "bool", 8},
    {"U8", "uint8", 8},
    {"I8", "int8", 8},
    {"F8_E5M2", "float8_e5m2", 8},
    {"F8_E4M3", "float8_e4m3fn", 8},
    {"F8_E4M3FNUZ", "float8_e4m3fnuz", 8},
    {"F8_E5M2FNUZ", "float8_e5m2fnuz", 8},
    {"F8_E8M0", "float8_e8m0fnu", 8},
    {"I16", "int16", 16},
    {"U16", "uint16", 16},
    {"F16", "float16", 16},
    {"BF16", "bfloat16", 16},
    {"I32", "int32", 32},
    {"U32", "uint32", 32},
    {"F32", "float32", 32},
    {"C64", "complex64", 64},
    {"F64", "float64", 64},
    {"I64", "int64", 64},
    {"U64", "uint64", 64},
    {"F4", nullptr, 4},
    {"F6_E2M3", nullptr, 6},
    {"F6_E3M2", nullptr, 6},
};

// Null: the type is not known.
inline const TensorType* tensor_type(std::string_view code) noexcept {
    const auto* const known = std::find_if(std::begin(kTensorTypes), std::end(kTensorTypes),
                                           [&](const TensorType& one) { return one.code == code; });
    return known == std::end(kTensorTypes) ? nullptr : known;
}

}  // namespace penstock::formats
