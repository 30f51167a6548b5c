// See stored_dataset.hpp.
#include "formats/stored_dataset.hpp"

#include <algorithm>
#include <bit>
#include <iterator>

namespace penstock::formats {
namespace {

struct KnownType {
    const char* name;
    char kind;
    std::uint32_t item_bytes, word_bytes;
};
constexpr KnownType kTypes[] = {
    {"bool", 'b', 1, 1},
    {"int8", 'i', 1, 1},
    {"int16", 'i', 2, 2},
    {"int32", 'i', 4, 4},
    {"int64", 'i', 8, 8},
    {"uint8", 'u', 1, 1},
    {"uint16", 'u', 2, 2},
    {"uint32", 'u', 4, 4},
    {"uint64", 'u', 8, 8},
    {"float16", 'f', 2, 2},
    {"float32", 'f', 4, 4},
    {"float64", 'f', 8, 8},
    {"complex64", 'c', 8, 4},
    {"complex128", 'c', 16, 8},
    {"bfloat16", 'E', 2, 2},
    {"float8_e5m2", 'E', 1, 1},
    {"float8_e4m3fn", 'E', 1, 1},
    {"float8_e4m3fnuz", 'E', 1, 1},
    {"float8_e5m2fnuz", 'E', 1, 1},
    {"float8_e8m0fnu", 'E', 1, 1},
};

}  // namespace

bool type_named(std::string_view name, ElementType& type) {
    const auto* known =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const KnownType& one) { return name == one.name; });
    if (known == std::end(kTypes)) return false;
    type = {known->name, known->kind, known->item_bytes, known->word_bytes, false};
    return true;
}

ElementType raw_type(std::uint32_t bytes) {
    return {"void" + std::to_string(8 * std::uint64_t{bytes}), 'V', bytes, 1, false};
}

ElementType stored_in(ElementType type, bool big_endian) {
    type.is_foreign_order = type.word_bytes > 1 && big_endian != (std::endian::native == std::endian::big);
    return type;
}

StoredDataset contiguous(std::string name, const ElementType& type, std::vector<std::int64_t> shape,
                         std::uint64_t offset_bytes) {
    StoredDataset dataset{.name = std::move(name), .type = type, .offset_bytes = offset_bytes};
    dataset.grid.item_bytes = type.item_bytes;
    dataset.grid.strides = data::c_strides(shape, type.item_bytes);
    for (const std::int64_t extent : shape) dataset.grid.chunk_shape.push_back(std::max<std::int64_t>(1, extent));
    dataset.grid.shape = std::move(shape);
    return dataset;
}

std::uint64_t extent_bytes(const StoredDataset& dataset) {
    const auto& shape = dataset.grid.shape;
    return std::find(shape.begin(), shape.end(), 0) != shape.end() ? 0 : data::chunk_bytes(dataset.grid);
}

}  // namespace penstock::formats
