// See record.hpp. Numbers of the trailer are little-endian, as all of HDF5's here.
#include "restart/stored/record.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/json.hpp"
#include "formats/create/hdf5/encoder.hpp"
#include "formats/json/json_reader.hpp"
#include "formats/stored_dataset.hpp"
#include "penstock/checksum.hpp"
#include "restart/block_sums.hpp"

namespace penstock::restart {
namespace {

constexpr std::string_view kRestartMagic = "PENSTRST";
constexpr std::uint64_t kRecordVersion = 1;

std::string hexadecimal(std::span<const std::byte> bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (const std::byte one : bytes) {
        text += digits[std::to_integer<unsigned>(one) >> 4];
        text += digits[std::to_integer<unsigned>(one) & 15];
    }
    return text;
}

std::vector<std::byte> from_hexadecimal(const std::string& text) {
    const auto digit = [](char one) { return static_cast<unsigned>(one <= '9' ? one - '0' : one - 'a' + 10) & 15; };
    std::vector<std::byte> bytes(text.size() / 2);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::byte>(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
    return bytes;
}

void add_shape(base::Json& json, std::span<const std::uint64_t> shape) {
    json.key("shape").begin_array();
    for (const std::uint64_t length : shape) json.value(length);
    json.end_array();
}

void add_attribute(base::Json& json, const SnapshotAttribute& attribute) {
    json.begin_object().field("name", attribute.name).field("dtype", attribute.dtype);
    add_shape(json, attribute.shape);
    json.field("values", hexadecimal(attribute.values)).key("texts").begin_array();
    for (const std::string& text : attribute.texts) json.value(text);
    json.end_array().end_object();
}

// Members of a record, whose checksum was right: what lacks is of a newer version.
const formats::Value& member(const formats::Value& value, const char* name) {
    if (const formats::Value* found = value.member(name)) return *found;
    throw BadRecord{std::string("its record has no ") + name};
}
std::uint64_t number(const formats::Value& value, const char* name) {
    const std::optional<std::int64_t> found = member(value, name).integer();
    if (!found || *found < 0) throw BadRecord{std::string("its record has no number ") + name};
    return static_cast<std::uint64_t>(*found);
}
const std::string& text(const formats::Value& value, const char* name) {
    if (const std::string* found = member(value, name).text()) return *found;
    throw BadRecord{std::string("its record has no text ") + name};
}
const formats::List& list(const formats::Value& value, const char* name) {
    if (const formats::List* found = member(value, name).list()) return *found;
    throw BadRecord{std::string("its record has no list ") + name};
}
std::vector<std::uint64_t> shape(const formats::Value& value) {
    const auto found = formats::integers(list(value, "shape"), 0);
    if (!found) throw BadRecord{"its record has a shape that is none"};
    return {found->begin(), found->end()};
}

RecordedField parsed_field(const formats::Value& value, std::uint64_t file_bytes) {
    RecordedField field{.name = text(value, "name"), .dtype = text(value, "dtype")};
    field.shape = shape(value);
    field.offset_bytes = number(value, "offset");
    field.bytes = number(value, "bytes");
    field.first_block = number(value, "first_block");
    formats::ElementType type;
    if (!formats::type_named(field.dtype, type)) throw BadRecord{"field " + field.name + " has an unknown type"};
    field.item_bytes = type.item_bytes;
    if (field.bytes != elements_of(field.shape) * field.item_bytes || field.offset_bytes > file_bytes ||
        field.bytes > file_bytes - field.offset_bytes) {
        throw BadRecord{"field " + field.name + " does not lie in the file"};
    }
    return field;
}

SnapshotAttribute parsed_attribute(const formats::Value& value) {
    SnapshotAttribute attribute{.name = text(value, "name"), .shape = shape(value), .dtype = text(value, "dtype")};
    attribute.values = from_hexadecimal(text(value, "values"));
    for (const formats::Value& one : list(value, "texts")) {
        if (const std::string* found = one.text()) attribute.texts.push_back(*found);
    }
    return attribute;
}

std::uint64_t number_at(std::span<const std::byte> bytes, std::size_t at, std::size_t count) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < count; ++i) value |= std::to_integer<std::uint64_t>(bytes[at + i]) << (8 * i);
    return value;
}

}  // namespace

std::uint32_t sum_of(std::span<const std::byte> bytes) noexcept { return checksum(ChecksumKind::crc32, bytes); }

std::string record_text(const RestartRecord& record) {
    base::Json json;
    json.begin_object().field("version", kRecordVersion).field("block_bytes", kSummedBytes);
    json.field("checksums_offset", record.sums_offset).field("blocks", record.blocks).key("fields").begin_array();
    for (const RecordedField& field : record.fields) {
        json.begin_object().field("name", field.name).field("dtype", field.dtype);
        add_shape(json, field.shape);
        json.field("offset", field.offset_bytes).field("bytes", field.bytes);
        json.field("first_block", field.first_block).end_object();
    }
    json.end_array().key("attributes").begin_array();
    for (const SnapshotAttribute& attribute : record.attributes) add_attribute(json, attribute);
    std::string made = std::move(json.end_array().end_object()).text();
    made.resize(formats::rounded_up(made.size(), 8), ' ');
    return made;
}

std::vector<std::byte> trailer_bytes(const RecordTrailer& trailer) {
    formats::Hdf5Encoder out;
    out.text(kRestartMagic).number(kRecordVersion, 8).number(trailer.text_bytes, 8).number(trailer.generation, 8);
    out.number(trailer.file_bytes, 8).number(trailer.text_sum, 4).number(trailer.table_sum, 4);
    out.number(trailer.metadata_bytes, 8).number(trailer.metadata_sum, 4);
    std::vector<std::byte> bytes = out.take();
    formats::Hdf5Encoder sum;
    sum.number(sum_of(bytes), 4);
    for (const std::byte one : sum.take()) bytes.push_back(one);
    return bytes;
}

RecordTrailer parse_trailer(std::span<const std::byte> bytes, std::uint64_t file_bytes) {
    if (bytes.size() < kTrailerBytes || std::memcmp(bytes.data(), kRestartMagic.data(), kRestartMagic.size()) != 0) {
        throw BadRecord{"it does not end with the record of a restart"};
    }
    if (number_at(bytes, 60, 4) != sum_of(bytes.first(60))) throw BadRecord{"the end of its record is damaged"};
    if (number_at(bytes, 8, 8) != kRecordVersion) {
        throw BadRecord{"a newer Penstock wrote it: version " + std::to_string(number_at(bytes, 8, 8))};
    }
    const RecordTrailer trailer{.text_bytes = number_at(bytes, 16, 8),
                                .generation = number_at(bytes, 24, 8),
                                .file_bytes = number_at(bytes, 32, 8),
                                .metadata_bytes = number_at(bytes, 48, 8),
                                .text_sum = static_cast<std::uint32_t>(number_at(bytes, 40, 4)),
                                .table_sum = static_cast<std::uint32_t>(number_at(bytes, 44, 4)),
                                .metadata_sum = static_cast<std::uint32_t>(number_at(bytes, 56, 4))};
    const std::uint64_t rest = file_bytes - kTrailerBytes;
    if (trailer.file_bytes != file_bytes || trailer.text_bytes > rest || trailer.metadata_bytes > rest) {
        throw BadRecord{"it has " + std::to_string(file_bytes) + " bytes and says " +
                        std::to_string(trailer.file_bytes)};
    }
    return trailer;
}

RestartRecord parse_record(std::string_view given, const RecordTrailer& trailer) {
    if (sum_of(std::as_bytes(std::span(given))) != trailer.text_sum) throw BadRecord{"its record is damaged"};
    try {
        const formats::Value value = formats::read_json(given);
        if (number(value, "block_bytes") != kSummedBytes) throw BadRecord{"its blocks have another size"};
        RestartRecord record;
        record.sums_offset = number(value, "checksums_offset");
        record.blocks = number(value, "blocks");
        for (const formats::Value& one : list(value, "fields"))
            record.fields.push_back(parsed_field(one, trailer.file_bytes));
        for (const formats::Value& one : list(value, "attributes")) record.attributes.push_back(parsed_attribute(one));
        return record;
    } catch (const formats::BadDocument& bad) {
        throw BadRecord{"its record is no JSON: " + bad.cause};
    }
}

}  // namespace penstock::restart
