// What a format says of one dataset, as plain values: name, type of the elements, shape, and where the elements lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/decode/pipeline.hpp"
#include "data/selection/selection.hpp"

namespace penstock::formats {

struct ElementType {
    std::string name = "void8";  // as NumPy's, and "bfloat16", "float8_e5m2", ...; "void16": bytes that are no number
    char kind = 'V';             // b i u f c V, E of a float that NumPy lacks, S U of text, M m of times
    std::uint32_t item_bytes = 1;
    std::uint32_t word_bytes = 1;   // that a byte order is about: half of a complex number
    bool is_foreign_order = false;  // words are stored in the order of bytes that this machine does not have

    std::uint32_t swap_bytes() const noexcept { return is_foreign_order && word_bytes > 1 ? word_bytes : 0; }
};

// By the name, e.g. "float32", in the order of this machine. False: there is none of that name.
bool type_named(std::string_view name, ElementType& type);
// Bytes that are no number.
ElementType raw_type(std::uint32_t bytes);
// The type with its words stored in that order.
ElementType stored_in(ElementType type, bool big_endian);

struct StoredDataset {
    std::string name;
    ElementType type{};
    data::StoredGrid grid{};
    std::uint64_t offset_bytes = 0;       // of the only chunk, in formats that have no others
    std::vector<data::Filter> filters{};  // that chunks went through; none: elements lie as they are
    std::vector<std::byte> fill{};  // an element of a chunk that is not stored, in this machine's order; none: zeros
    std::string refusal{};          // why it cannot be read here; empty: it can
    std::string write_refusal{};    // why it cannot be written here, though read; empty: it can
};

// A dataset whose elements lie one behind the other in C order.
StoredDataset contiguous(std::string name, const ElementType& type, std::vector<std::int64_t> shape,
                         std::uint64_t offset_bytes);
// Bytes from the first to the last element of a dataset of one chunk. 0: it has none.
std::uint64_t extent_bytes(const StoredDataset& dataset);

}  // namespace penstock::formats
