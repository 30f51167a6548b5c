// See attributes.hpp.
#include "c/output/attributes.hpp"

#include <string>

#include "c/boundary.hpp"
#include "formats/stored_dataset.hpp"

namespace penstock::c {
namespace {

// How many values an array of that shape has, and room for them.
std::uint64_t checked_count(const std::vector<std::uint64_t>& shape) {
    constexpr std::uint64_t kMost = 65536;  // an attribute has no more bytes
    std::uint64_t count = 1;
    for (const std::uint64_t length : shape) {
        if (length > kMost || count * length > kMost) {
            refuse("set attribute", "its shape has more than 65536 values", "store it as a dataset");
        }
        count *= length;
    }
    return count;
}

}  // namespace

std::vector<std::uint64_t> lengths(const char* operation, const std::uint64_t* shape, std::uint64_t rank) {
    if (rank > PENSTOCK_MOST_DIMENSIONS) {
        refuse(operation, "the rank is " + std::to_string(rank), "use at most 16 dimensions");
    }
    if (rank == 0) return {};
    required("the shape", shape);
    return {shape, shape + rank};
}

SnapshotAttribute snapshot_attribute(const penstock_snapshot_attribute* given) {
    const auto wanted = copied("penstock_snapshot_attribute", &required("penstock_snapshot_attribute", given));
    SnapshotAttribute attribute;
    attribute.name = &required("the name of the attribute", wanted.name);
    attribute.shape = lengths("set attribute", wanted.shape, wanted.rank);
    const std::uint64_t count = checked_count(attribute.shape);
    if (wanted.dtype == nullptr) {
        required("penstock_snapshot_attribute.texts, or dtype,", wanted.texts);
        for (std::uint64_t i = 0; i < count; ++i) attribute.texts.emplace_back(&required("a text", wanted.texts[i]));
        attribute.any_length = wanted.any_length != 0;
        attribute.text_bytes = wanted.text_bytes;
        return attribute;
    }
    attribute.dtype = wanted.dtype;
    formats::ElementType type;
    if (!formats::type_named(attribute.dtype, type) || count == 0) return attribute;
    const auto* first = static_cast<const std::byte*>(
        &required("penstock_snapshot_attribute.values", static_cast<const std::byte*>(wanted.values)));
    attribute.values.assign(first, first + count * type.item_bytes);
    return attribute;
}

}  // namespace penstock::c
