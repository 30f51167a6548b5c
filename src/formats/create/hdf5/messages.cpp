// See messages.hpp.
#include "formats/create/hdf5/messages.hpp"

#include <algorithm>
#include <string>

#include "formats/faults.hpp"
#include "penstock/error.hpp"

namespace penstock::formats {
namespace {

constexpr std::uint64_t kMostMessageBytes = 65528;  // a multiple of 8 below 2^16

bool is_ascii(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char one) { return static_cast<unsigned char>(one) < 0x80; });
}

std::vector<std::byte> dataspace_bytes(std::span<const std::uint64_t> shape, std::span<const std::uint64_t> most) {
    Hdf5Encoder out;
    out.number(1, 1).number(shape.size(), 1).number(most.empty() ? 0 : 1, 1).number(0, 5);
    for (const std::uint64_t length : shape) out.number(length, 8);
    for (const std::uint64_t length : most) out.number(length, 8);
    return out.take();
}

HeaderMessage fill_message(const Hdf5Dataset& dataset) {
    constexpr unsigned kLate = 2, kIncremental = 3, kIfSet = 2;
    Hdf5Encoder out;
    out.number(2, 1).number(dataset.chunk.empty() ? kLate : kIncremental, 1).number(kIfSet, 1).number(1, 1);
    out.number(dataset.fill.size(), 4).copy(dataset.fill);
    return {0x0005, out.take()};
}

struct KnownFilter {
    const char* name;
    unsigned number;
    bool may_be_left_out;  // of a chunk, as the HDF5 library marks it
};
constexpr KnownFilter kFilters[] = {{"deflate", 1, true},
                                    {"shuffle", 2, true},
                                    {"fletcher32", 3, false},
                                    {"hdf5-lz4", 32004, true},
                                    {"zstd", 32015, true}};

HeaderMessage pipeline_message(const Hdf5Dataset& dataset) {
    Hdf5Encoder out;
    out.number(1, 1).number(dataset.filters.size(), 1).number(0, 6);
    for (const data::Filter& filter : dataset.filters) {
        const auto* known = std::find_if(std::begin(kFilters), std::end(kFilters),
                                         [&](const KnownFilter& one) { return filter.name == one.name; });
        if (known == std::end(kFilters))
            throw Error(ErrorCode::unsupported, "create", "a new file of HDF5 takes no filter " + filter.name,
                        "take deflate, zstd, hdf5-lz4, shuffle and fletcher32");
        std::vector<std::uint32_t> values = filter.values;
        if (values.empty() && filter.name == "shuffle") values = {dataset.type.item_bytes};
        out.number(known->number, 2).number(0, 2).number(known->may_be_left_out ? 1 : 0, 2).number(values.size(), 2);
        for (const std::uint32_t value : values) out.number(value, 4);
        out.pad_to(8);
    }
    return {0x000B, out.take()};
}

HeaderMessage link_message(const Hdf5Link& link, std::uint64_t order, std::span<const std::uint64_t> objects) {
    constexpr unsigned kHasOrder = 4, kHasKind = 8, kHasCharacters = 0x10, kTwoByteLength = 1;
    constexpr unsigned kHard = 0, kSoft = 1, kExternal = 64;
    unsigned kind = kHard;
    if (link.leads == Hdf5Link::Leads::to_path) kind = kSoft;
    if (link.leads == Hdf5Link::Leads::to_other_file) kind = kExternal;
    const bool is_plain = is_ascii(link.name);
    Hdf5Encoder out;
    out.number(1, 1).number(kHasOrder | kHasKind | kTwoByteLength | (is_plain ? 0 : kHasCharacters), 1);
    out.number(kind, 1).number(order, 8);
    if (!is_plain) out.number(1, 1);
    out.number(link.name.size(), 2).text(link.name);
    if (kind == kHard) out.address(objects[link.object]);
    if (kind == kSoft) out.number(link.path.size(), 2).text(link.path);
    if (kind == kExternal)
        out.number(link.file.size() + link.path.size() + 3, 2)
            .number(0, 1)
            .text(link.file)
            .number(0, 1)
            .text(link.path)
            .number(0, 1);
    return {0x0006, out.take()};
}

// The type, the shape and the bytes of an attribute.
struct AttributeParts {
    std::vector<std::byte> type;
    std::vector<std::uint64_t> shape;
    std::vector<std::byte> bytes;
};

AttributeParts value_parts(const Hdf5Attribute& attribute) {
    AttributeParts parts{{}, attribute.value.shape, attribute.value.bytes};
    ElementType type = attribute.value.type;
    if (type.kind == 'S' && type.item_bytes == 0) {  // the format has no text of no bytes
        type.item_bytes = 1;
        parts.bytes.assign(element_count(parts.shape), std::byte{0});
    }
    parts.type = datatype_bytes(type, attribute.padding);
    if (type.kind == 'S') {
        constexpr std::byte kUtf8{0x10};
        const bool is_plain =
            std::all_of(parts.bytes.begin(), parts.bytes.end(), [](std::byte one) { return one < std::byte{0x80}; });
        if (!is_plain) parts.type[1] |= kUtf8;
    }
    if (element_count(parts.shape) * type.item_bytes != parts.bytes.size())
        throw Error(ErrorCode::invalid_argument, "create",
                    "attribute " + attribute.value.name + " has " + std::to_string(parts.bytes.size()) +
                        " bytes, and its type and shape take others");
    return parts;
}

AttributeParts text_parts(const Hdf5Attribute& attribute, const NamedPlaces& places) {
    Hdf5Encoder out;
    for (std::size_t i = 0; i < attribute.texts.size(); ++i) {
        const bool is_there = !places.heap.empty() && !attribute.texts[i].empty();
        const HeapPlace at = is_there ? places.heap[i] : HeapPlace{};
        out.number(attribute.texts[i].size(), 4).address(at.collection).number(at.index, 4);
    }
    return {text_type_bytes(), attribute.value.shape, out.take()};
}

AttributeParts list_parts(const Hdf5Attribute& attribute, const NamedPlaces& places) {
    AttributeParts parts{{}, {attribute.lists.size()}, {}};
    Hdf5Encoder out;
    for (std::size_t i = 0; i < attribute.lists.size(); ++i) {
        const std::vector<Hdf5Reference>& list = attribute.lists[i];
        if (attribute.holds == Hdf5Attribute::Holds::reference_lists) {
            const HeapPlace at = places.heap.empty() ? HeapPlace{} : places.heap[i];
            out.number(list.size(), 4).address(at.collection).number(at.index, 4);
        } else {
            out.address(places.objects[list.at(0).object]);
            if (attribute.holds == Hdf5Attribute::Holds::uses) out.number(list[0].dimension, 8);
        }
    }
    parts.bytes = out.take();
    parts.type = attribute.holds == Hdf5Attribute::Holds::uses ? use_type_bytes() : reference_type_bytes();
    if (attribute.holds == Hdf5Attribute::Holds::reference_lists) parts.type = reference_list_type_bytes();
    return parts;
}

AttributeParts attribute_parts(const Hdf5Attribute& attribute, const NamedPlaces& places) {
    if (attribute.holds == Hdf5Attribute::Holds::values) return value_parts(attribute);
    if (attribute.holds == Hdf5Attribute::Holds::texts) return text_parts(attribute, places);
    return list_parts(attribute, places);
}

}  // namespace

HeaderMessage dataspace_message(const Hdf5Dataset& dataset) {
    return {0x0001, dataspace_bytes(dataset.shape, dataset.most)};
}

HeaderMessage layout_message(const Hdf5Dataset& dataset, std::uint64_t address) {
    constexpr unsigned kContiguous = 1, kChunked = 2;
    Hdf5Encoder out;
    out.number(3, 1);
    if (dataset.chunk.empty()) {
        const std::uint64_t bytes = element_count(dataset.shape) * dataset.type.item_bytes;
        out.number(kContiguous, 1).address(address).number(bytes, 8);
        return {0x0008, out.take()};
    }
    out.number(kChunked, 1).number(dataset.chunk.size() + 1, 1).address(address);
    for (const std::uint64_t length : dataset.chunk) out.number(length, 4);
    out.number(dataset.type.item_bytes, 4);
    return {0x0008, out.take()};
}

HeaderMessage virtual_message(const HeapPlace& sources) {
    constexpr unsigned kVersion = 4, kVirtual = 3;
    Hdf5Encoder out;
    out.number(kVersion, 1).number(kVirtual, 1).address(sources.collection).number(sources.index, 4);
    return {0x0008, out.take()};
}

HeaderMessage continuation_message(std::uint64_t address, std::uint64_t bytes) {
    return {0x0010, Hdf5Encoder().address(address).number(bytes, 8).take()};
}

std::vector<HeaderMessage> dataset_messages(const Hdf5Dataset& dataset) {
    std::vector<HeaderMessage> messages{{0x0003, datatype_bytes(dataset.type, dataset.padding)}};
    messages.push_back(fill_message(dataset));
    if (!dataset.filters.empty()) messages.push_back(pipeline_message(dataset));
    return messages;
}

std::vector<HeaderMessage> group_messages(std::span<const Hdf5Link> links, std::span<const std::uint64_t> objects) {
    constexpr std::size_t kCompact = 8, kDense = 6;  // links of a group that the HDF5 library keeps in its header
    constexpr unsigned kOrderKeptAndIndexed = 3;
    Hdf5Encoder info;
    info.number(0, 1).number(kOrderKeptAndIndexed, 1).number(links.size(), 8);
    info.address(kNoAddress).address(kNoAddress).address(kNoAddress);
    Hdf5Encoder limits;
    limits.number(0, 1).number(1, 1);
    limits.number(std::clamp<std::size_t>(links.size(), kCompact, 65535), 2).number(kDense, 2);
    std::vector<HeaderMessage> messages{{0x0002, info.take()}, {0x000A, limits.take()}};
    for (std::size_t i = 0; i < links.size(); ++i) messages.push_back(link_message(links[i], i, objects));
    return messages;
}

HeaderMessage attribute_message(const Hdf5Attribute& attribute, const NamedPlaces& places) {
    const std::string& name = attribute.value.name;
    const AttributeParts parts = attribute_parts(attribute, places);
    const std::vector<std::byte> space = dataspace_bytes(parts.shape, {});
    const bool is_plain = is_ascii(name);
    Hdf5Encoder out;
    out.number(is_plain ? 1 : 3, 1).number(0, 1).number(name.size() + 1, 2);
    out.number(parts.type.size(), 2).number(space.size(), 2);
    if (is_plain) {
        out.padded_text(name).copy(parts.type).pad_to(8).copy(space).pad_to(8);
    } else {
        out.number(1, 1).text(name).number(0, 1).copy(parts.type).copy(space);
    }
    out.copy(parts.bytes);
    if (out.size() > kMostMessageBytes)
        throw Error(ErrorCode::unsupported, "create",
                    "attribute " + shown(name) + " takes " + std::to_string(out.size()) +
                        " bytes, and an attribute of HDF5 at most " + std::to_string(kMostMessageBytes),
                    "store it as a dataset");
    return {0x000C, out.take()};
}

std::vector<std::byte> encode_messages(std::span<const HeaderMessage> messages) {
    Hdf5Encoder out;
    for (const HeaderMessage& message : messages)
        out.number(message.type, 2)
            .number(rounded_up(message.body.size(), 8), 2)
            .number(0, 4)
            .copy(message.body)
            .pad_to(8);
    return out.take();
}

std::vector<std::byte> encode_prefix(const HeaderPrefix& prefix) {
    if (prefix.messages > 65535)
        throw Error(ErrorCode::unsupported, "create",
                    std::to_string(prefix.messages) + " links and attributes of one object; HDF5 takes 65535",
                    "make groups");
    Hdf5Encoder out;
    out.number(1, 1).number(0, 1).number(prefix.messages, 2).number(prefix.links, 4).number(prefix.block_bytes, 4);
    return out.number(0, 4).take();
}

}  // namespace penstock::formats
