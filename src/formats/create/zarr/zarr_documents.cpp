// See zarr_documents.hpp.
#include "formats/create/zarr/zarr_documents.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <span>

#include "base/json.hpp"
#include "data/decode/checksums/sums.hpp"
#include "formats/create/check_schema.hpp"
#include "formats/faults.hpp"
#include "penstock/error.hpp"

namespace penstock::formats {
namespace {

using base::json_quoted;

constexpr std::array<const char*, 14> kZarrTypes{"bool",    "int8",    "int16",   "int32",     "int64",
                                                 "uint8",   "uint16",  "uint32",  "uint64",    "float16",
                                                 "float32", "float64", "complex64", "complex128"};

[[noreturn]] void refuse_zarr(const std::string& store, std::string cause, std::string advice) {
    throw not_created(store, std::move(cause), std::move(advice));
}

std::string list(std::span<const std::uint64_t> numbers) {
    std::string text = "[";
    for (const std::uint64_t one : numbers) text += (text.size() == 1 ? "" : ",") + std::to_string(one);
    return text + "]";
}

// JSON has no words for what is no number: these are Zarr's.
std::string number_text(double value) {
    if (std::isnan(value)) return "\"NaN\"";
    if (std::isinf(value)) return value < 0 ? "\"-Infinity\"" : "\"Infinity\"";
    std::array<char, 40> room{};
    const auto ended = std::to_chars(room.data(), room.data() + room.size(), value);
    std::string text(room.data(), ended.ptr);
    if (text.find_first_of(".en") == std::string::npos) text += ".0";
    return text;
}

std::string base64(std::span<const unsigned char> bytes) {
    constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
        std::uint32_t group = 0;
        for (std::size_t i = 0; i < 3; ++i) group = group << 8 | (at + i < bytes.size() ? bytes[at + i] : 0u);
        for (std::size_t i = 0; i < 4; ++i)
            text += at + i <= bytes.size() ? digits[group >> (18 - 6 * i) & 63] : '=';
    }
    return text;
}

template <typename Number>
Number number_at(const NewAttribute& one, std::size_t index) {
    Number value;
    std::memcpy(&value, one.bytes.data() + index * sizeof value, sizeof value);
    return value;
}

double double_at(const NewAttribute& one, std::size_t index) {
    if (one.type.name == "int32") return number_at<std::int32_t>(one, index);
    return one.type.name == "float32" ? number_at<float>(one, index) : number_at<double>(one, index);
}

// xarray tells the value of floats so in stores of version 3, and looks for nothing else. The type is that of the
// elements, whatever that of the attribute is.
std::string fill_value_text(double value, char kind) {
    if (kind == 'i' || kind == 'u') return std::to_string(static_cast<std::int64_t>(value));
    const auto bytes = std::bit_cast<std::array<unsigned char, sizeof value>>(value);
    return "\"" + base64(bytes) + "\"";
}

std::string value_text(const NewAttribute& one, std::size_t index) {
    if (one.type.name == "int32") return std::to_string(number_at<std::int32_t>(one, index));
    return number_text(double_at(one, index));
}

std::string attribute_text(const NewAttribute& one, char kind) {
    if (one.type.kind == 'S') {
        return json_quoted({reinterpret_cast<const char*>(one.bytes.data()), one.bytes.size()});
    }
    const std::size_t count = one.bytes.size() / one.type.item_bytes;
    if (one.shape.empty() && one.name == "_FillValue") return fill_value_text(double_at(one, 0), kind);
    if (one.shape.empty()) return value_text(one, 0);
    std::string text = "[";
    for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + value_text(one, i);
    return text + "]";
}

// `kind`: of the elements of what has them.
std::string attributes_text(std::span<const NewAttribute> attributes, char kind) {
    std::string text = "{";
    for (const NewAttribute& one : attributes) {
        text += (text.size() == 1 ? "" : ",") + json_quoted(one.name) + ":" + attribute_text(one, kind);
    }
    return text + "}";
}

std::string fill_text(const ElementType& type) {
    if (type.kind == 'b') return "false";
    if (type.kind == 'c') return "[0.0,0.0]";
    return type.kind == 'f' ? "\"NaN\"" : "0";
}

// Elements of integers are never such a number, and readers refuse the store.
void check_fill_value(const std::string& store, const NewVariable& one) {
    constexpr double most = 9007199254740992.0;  // 2^53
    if (one.type.kind != 'i' && one.type.kind != 'u') return;
    for (const NewAttribute& given : one.attributes) {
        if (given.name != "_FillValue" || given.type.kind == 'S' || given.bytes.empty()) continue;
        const double value = double_at(given, 0);
        if (value == std::trunc(value) && std::abs(value) <= most) continue;
        refuse_zarr(store,
                    "_FillValue of variable " + shown(one.name) + " is " + number_text(value) + ", and its dtype is " +
                        one.type.name,
                    "give a whole number up to 2^53");
    }
}

std::string filter_text(const data::Filter& filter) {
    const std::string value = filter.values.empty() ? "0" : std::to_string(filter.values[0]);
    if (filter.name == "shuffle")
        return R"({"name":"numcodecs.shuffle","configuration":{"elementsize":)" + value + "}}";
    if (filter.name == "gzip") return R"({"name":"gzip","configuration":{"level":)" + value + "}}";
    if (filter.name == "zstd")
        return R"({"name":"zstd","configuration":{"level":)" + value + R"(,"checksum":false}})";
    return R"({"name":"numcodecs.lz4","configuration":{"acceleration":1}})";
}

constexpr const char* kLittle = R"({"name":"bytes","configuration":{"endian":"little"}})";

void append_number(std::vector<std::byte>& bytes, std::uint64_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) bytes.push_back(static_cast<std::byte>(value >> 8 * i & 0xff));
}

}  // namespace

ZarrDocuments::ZarrDocuments(const FileSchema& schema, std::vector<std::uint64_t> steps_in_chunk,
                             const std::string& store)
    : schema_(schema), steps_in_chunk_(std::move(steps_in_chunk)) {
    for (NewVariable& one : schema_.variables) {
        one.values.clear();
        const std::string what = "variable " + shown(one.name);
        const auto found = std::find(kZarrTypes.begin(), kZarrTypes.end(), one.type.name);
        if (found == kZarrTypes.end()) {
            refuse_zarr(store, what + " has dtype " + one.type.name + ", which Zarr does not have",
                        "use bool, integers, floats or complex numbers");
        }
        check_fill_value(store, one);
        if (one.name == "zarr.json") refuse_zarr(store, what + " has the name of a document of Zarr", "rename it");
    }
}

bool ZarrDocuments::is_sharded(std::size_t variable) const { return !schema_.variables[variable].filters.empty(); }

// Zarr has no chunks of no elements, and shards have whole chunks.
std::vector<std::uint64_t> ZarrDocuments::chunk_shape(std::size_t variable) const {
    const NewVariable& one = schema_.variables[variable];
    std::vector<std::uint64_t> shape = step_shape(schema_, one);
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        shape[axis] = std::max<std::uint64_t>(shape[axis], 1);
        if (is_sharded(variable)) shape[axis] = (shape[axis] + one.chunk[axis] - 1) / one.chunk[axis] * one.chunk[axis];
    }
    if (grows(schema_, one)) shape.insert(shape.begin(), steps_in_chunk_[variable]);
    return shape;
}

std::string ZarrDocuments::codecs(const NewVariable& variable) const {
    std::string inner = variable.type.word_bytes > 1 ? kLittle : R"({"name":"bytes"})";
    for (const data::Filter& one : variable.filters) inner += "," + filter_text(one);
    if (variable.filters.empty()) return "[" + inner + "]";
    std::vector<std::uint64_t> chunk = variable.chunk;
    chunk.insert(chunk.begin(), 1);
    return R"([{"name":"sharding_indexed","configuration":{"chunk_shape":)" + list(chunk) + R"(,"codecs":[)" + inner +
           R"(],"index_codecs":[)" + kLittle + R"(,{"name":"crc32c"}],"index_location":"end"}}])";
}

std::string ZarrDocuments::array(std::size_t variable, std::uint64_t steps) const {
    const NewVariable& one = schema_.variables[variable];
    std::vector<std::uint64_t> shape = step_shape(schema_, one);
    if (grows(schema_, one)) shape.insert(shape.begin(), steps);
    std::string names = "[";
    for (const std::size_t dimension : one.dimensions) {
        names += (names.size() == 1 ? "" : ",") + json_quoted(schema_.dimensions[dimension].name);
    }
    return R"({"zarr_format":3,"node_type":"array","shape":)" + list(shape) + R"(,"data_type":)" +
           json_quoted(one.type.name) + R"(,"chunk_grid":{"name":"regular","configuration":{"chunk_shape":)" +
           list(chunk_shape(variable)) +
           R"(}},"chunk_key_encoding":{"name":"default","configuration":{"separator":"."}},"fill_value":)" +
           fill_text(one.type) + R"(,"codecs":)" + codecs(one) + R"(,"attributes":)" +
           attributes_text(one.attributes, one.type.kind) + R"(,"dimension_names":)" + names + "]}";
}

std::string ZarrDocuments::root(std::uint64_t steps) const {
    std::string all;
    for (std::size_t i = 0; i < schema_.variables.size(); ++i) {
        all += (i == 0 ? "" : ",") + json_quoted(schema_.variables[i].name) + ":" + array(i, steps);
    }
    return R"({"zarr_format":3,"node_type":"group","attributes":)" + attributes_text(schema_.attributes, 'f') +
           R"(,"consolidated_metadata":{"kind":"inline","must_understand":false,"metadata":{)" + all + "}}}";
}

std::string ZarrDocuments::array_file(std::size_t variable) const {
    return schema_.variables[variable].name + "/zarr.json";
}

std::string ZarrDocuments::chunk_file(std::size_t variable, std::uint64_t step) const {
    const NewVariable& one = schema_.variables[variable];
    std::string key = one.name + "/c";
    const bool is_growing = grows(schema_, one);
    if (is_growing) key += "." + std::to_string(step / steps_in_chunk_[variable]);
    for (std::size_t axis = is_growing ? 1 : 0; axis < one.dimensions.size(); ++axis) key += ".0";
    return key;
}

std::vector<std::byte> ZarrDocuments::shard_index(const StoredChunks& stored) const {
    std::vector<std::byte> index;
    std::uint64_t offset = 0;
    for (const std::uint64_t bytes : stored) {
        append_number(index, offset, 8);
        append_number(index, bytes, 8);
        offset += bytes;
    }
    append_number(index, data::crc32c(index), 4);
    return index;
}

}  // namespace penstock::formats
