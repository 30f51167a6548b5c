// See snapshot_attribute.hpp.
#include "snapshot/snapshot_attribute.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>

#include "formats/create/hdf5/encoder.hpp"
#include "formats/faults.hpp"
#include "penstock/error.hpp"

namespace penstock::snapshot {
namespace {

// The caller names the attribute.
Error refused(std::string cause, std::string advice) {
    return {ErrorCode::invalid_argument, "set attribute", std::move(cause), std::move(advice)};
}

bool has_zero(const std::string& text) { return text.find('\0') != std::string::npos; }

// All texts in one length, each filled up with zeros.
formats::NewAttribute fixed_texts(const SnapshotAttribute& attribute) {
    std::size_t longest = 0;
    for (const std::string& text : attribute.texts) longest = std::max(longest, text.size());
    if (attribute.text_bytes != 0 && longest > attribute.text_bytes) {
        throw refused("has a text of " + std::to_string(longest) + " bytes; text_bytes is " +
                          std::to_string(attribute.text_bytes),
                      "give more text_bytes, or none");
    }
    const std::size_t bytes = std::max<std::size_t>({attribute.text_bytes, longest, 1});
    std::string all;
    for (const std::string& text : attribute.texts) all += text + std::string(bytes - text.size(), '\0');
    formats::NewAttribute made = formats::text_attribute(attribute.name, all);
    made.type.item_bytes = static_cast<std::uint32_t>(bytes);
    return made;
}

formats::NewAttribute numbers(const SnapshotAttribute& attribute, std::uint64_t count) {
    formats::NewAttribute made;
    made.name = attribute.name;
    if (!formats::type_named(attribute.dtype, made.type)) {
        throw refused("has the type " + formats::shown(attribute.dtype) + ", which is none",
                      "use names as float64, uint32 or bool");
    }
    if (attribute.values.size() != count * made.type.item_bytes) {
        throw refused("has " + std::to_string(attribute.values.size()) + " bytes; its type and shape take " +
                          std::to_string(count * made.type.item_bytes),
                      "give all values");
    }
    made.bytes = attribute.values;
    return made;
}

}  // namespace

bool snapshot_type(const std::string& name, formats::ElementType& type) {
    if (formats::type_named(name, type)) return true;
    std::uint32_t bytes = 0;
    const char* end = name.data() + name.size();
    if (name.size() < 2 || name[0] != 'S') return false;
    if (const auto read = std::from_chars(name.data() + 1, end, bytes); read.ptr != end || bytes == 0) return false;
    type = formats::text_attribute("", std::string_view(" ")).type;
    type.name = name;
    type.item_bytes = bytes;
    return true;
}

formats::Hdf5Attribute tree_attribute(const SnapshotAttribute& attribute) {
    if (attribute.name.empty()) throw refused("has no name", "give it one");
    if (has_zero(attribute.name) || std::any_of(attribute.texts.begin(), attribute.texts.end(), has_zero)) {
        throw refused("has a zero byte in its name or text, where readers see its end", "leave it out");
    }
    const std::uint64_t count = formats::element_count(attribute.shape);
    const bool is_text = attribute.dtype.empty();
    if (is_text && attribute.texts.size() != count) {
        throw refused(
            "has " + std::to_string(attribute.texts.size()) + " texts; its shape takes " + std::to_string(count),
            "give as many");
    }
    formats::Hdf5Attribute made;
    if (is_text && attribute.any_length) {
        made.holds = formats::Hdf5Attribute::Holds::texts;
        made.value.name = attribute.name;
        made.texts = attribute.texts;
    } else {
        made.value = is_text ? fixed_texts(attribute) : numbers(attribute, count);
    }
    made.value.shape = attribute.shape;
    return made;
}

}  // namespace penstock::snapshot
