// See zarr_documents.hpp.
#include "formats/create/zarr/zarr_documents.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>

#include "base/json.hpp"
#include "data/decode/checksums/sums.hpp"
#include "formats/create/check_schema.hpp"
#include "formats/create/stores/document_text.hpp"
#include "formats/faults.hpp"
#include "penstock/error.hpp"

namespace penstock::formats {
namespace {

using base::json_quoted;

constexpr std::array<const char*, 14> kZarrTypes{"bool",    "int8",    "int16",     "int32",     "int64",
                                                 "uint8",   "uint16",  "uint32",    "uint64",    "float16",
                                                 "float32", "float64", "complex64", "complex128"};

[[noreturn]] void refuse_zarr(const std::string& store, std::string cause, std::string advice) {
    throw not_created(store, std::move(cause), std::move(advice));
}

std::string base64(std::span<const unsigned char> bytes) {
    constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
        std::uint32_t group = 0;
        for (std::size_t i = 0; i < 3; ++i) group = group << 8 | (at + i < bytes.size() ? bytes[at + i] : 0u);
        for (std::size_t i = 0; i < 4; ++i) text += at + i <= bytes.size() ? digits[group >> (18 - 6 * i) & 63] : '=';
    }
    return text;
}

// xarray tells the value of floats so in stores of version 3, and looks for nothing else. The type is that of the
// elements, whatever that of the attribute is.
std::string fill_value_text(double value, char kind) {
    if (kind == 'i' || kind == 'u') return std::to_string(static_cast<std::int64_t>(value));
    const auto bytes = std::bit_cast<std::array<unsigned char, sizeof value>>(value);
    return "\"" + base64(bytes) + "\"";
}

// `kind`: of the elements of what has them.
std::string attributes_text(std::span<const NewAttribute> attributes, char kind) {
    std::string text = "{";
    for (const NewAttribute& one : attributes) {
        const bool is_fill_value = one.name == "_FillValue" && one.shape.empty() && one.type.kind != 'S';
        text += (text.size() == 1 ? "" : ",") + json_quoted(one.name) + ":" +
                (is_fill_value ? fill_value_text(number_of(one, 0), kind) : attribute_text(one));
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
        const double value = number_of(given, 0);
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
    if (filter.name == "zstd") return R"({"name":"zstd","configuration":{"level":)" + value + R"(,"checksum":false}})";
    return R"({"name":"numcodecs.lz4","configuration":{"acceleration":1}})";
}

constexpr std::uint64_t kSharedChunkBytes = std::uint64_t{1} << 20;  // of several steps in one
constexpr std::uint64_t kMostStepsInChunk = 256;
constexpr std::uint64_t kEntryBytes = 16;  // of a chunk in the index of a shard

constexpr std::uint64_t kNoChunk = ~std::uint64_t{0};  // both numbers of a chunk that is not stored

constexpr const char* kLittle = R"({"name":"bytes","configuration":{"endian":"little"}})";

void append_number(std::vector<std::byte>& bytes, std::uint64_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) bytes.push_back(static_cast<std::byte>(value >> 8 * i & 0xff));
}

std::uint64_t product(std::span<const std::uint64_t> numbers) {
    std::uint64_t all = 1;
    for (const std::uint64_t one : numbers) all *= one;
    return all;
}

}  // namespace

ZarrDocuments::ZarrDocuments(const FileSchema& schema, const std::string& store) : schema_(schema) {
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

// Small steps share a file, which costs less to write and to read.
std::uint64_t ZarrDocuments::steps_in_file(std::size_t variable) const {
    const std::uint64_t bytes = std::max<std::uint64_t>(block_bytes(schema_, schema_.variables[variable]), 1);
    return std::clamp<std::uint64_t>(kSharedChunkBytes / bytes, 1, kMostStepsInChunk);
}

// Zarr has no chunks of no elements, and shards have whole chunks.
std::vector<std::uint64_t> ZarrDocuments::chunk_shape(std::size_t variable) const {
    const NewVariable& one = schema_.variables[variable];
    std::vector<std::uint64_t> shape = block_shape(schema_, one);
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        shape[axis] = std::max<std::uint64_t>(shape[axis], 1);
        if (is_sharded(variable)) shape[axis] = (shape[axis] + one.chunk[axis] - 1) / one.chunk[axis] * one.chunk[axis];
    }
    if (grows(schema_, one)) shape.insert(shape.begin(), steps_in_file(variable));
    return shape;
}

bool ZarrDocuments::has_index_in_front(std::size_t variable) const {
    return is_sharded(variable) && steps_in_file(variable) > 1;
}

std::vector<std::uint64_t> ZarrDocuments::chunks_of_block(std::size_t variable) const {
    const NewVariable& one = schema_.variables[variable];
    std::vector<std::uint64_t> count = block_shape(schema_, one);
    for (std::size_t axis = 0; axis < count.size(); ++axis) {
        count[axis] = (count[axis] + one.chunk[axis] - 1) / one.chunk[axis];
    }
    return count;
}

// Of all chunks that the block has room for, in C order: the last one along a dimension may be a part of it.
std::vector<bool> ZarrDocuments::chunks_within(const StoreBlock& block) const {
    const NewVariable& one = schema_.variables[block.variable];
    const std::vector<std::uint64_t> shape = step_shape(schema_, one), whole = block_shape(schema_, one);
    const std::vector<std::uint64_t> count = chunks_of_block(block.variable);
    std::vector<bool> within(product(count));
    for (std::size_t i = 0; i < within.size(); ++i) {
        bool is_within = true;
        std::uint64_t left = i;
        for (std::size_t axis = count.size(); axis-- > 0; left /= count[axis]) {
            const std::uint64_t first = block.number.empty() ? 0 : block.number[axis] * whole[axis];
            is_within &= first + left % count[axis] * one.chunk[axis] < shape[axis];
        }
        within[i] = is_within;
    }
    return within;
}

std::string ZarrDocuments::codecs(std::size_t number) const {
    const NewVariable& variable = schema_.variables[number];
    std::string inner = variable.type.word_bytes > 1 ? kLittle : R"({"name":"bytes"})";
    for (const data::Filter& one : variable.filters) inner += "," + filter_text(one);
    if (variable.filters.empty()) return "[" + inner + "]";
    std::vector<std::uint64_t> chunk = variable.chunk;
    chunk.insert(chunk.begin(), 1);
    const std::string index = has_index_in_front(number) ? R"(],"index_location":"start"}}])"
                                                         : R"(,{"name":"crc32c"}],"index_location":"end"}}])";
    return R"([{"name":"sharding_indexed","configuration":{"chunk_shape":)" + list_text(chunk) + R"(,"codecs":[)" +
           inner + R"(],"index_codecs":[)" + kLittle + index;
}

std::string ZarrDocuments::array(std::size_t variable, std::uint64_t steps) const {
    const NewVariable& one = schema_.variables[variable];
    std::vector<std::uint64_t> shape = step_shape(schema_, one);
    if (grows(schema_, one)) shape.insert(shape.begin(), steps);
    return R"({"zarr_format":3,"node_type":"array","shape":)" + list_text(shape) + R"(,"data_type":)" +
           json_quoted(one.type.name) + R"(,"chunk_grid":{"name":"regular","configuration":{"chunk_shape":)" +
           list_text(chunk_shape(variable)) +
           R"(}},"chunk_key_encoding":{"name":"default","configuration":{"separator":"."}},"fill_value":)" +
           fill_text(one.type) + R"(,"codecs":)" + codecs(variable) + R"(,"attributes":)" +
           attributes_text(one.attributes, one.type.kind) + R"(,"dimension_names":)" + dimensions_text(schema_, one) +
           "}";
}

std::string ZarrDocuments::root(std::uint64_t steps) const {
    std::string all;
    for (std::size_t i = 0; i < schema_.variables.size(); ++i) {
        all += (i == 0 ? "" : ",") + json_quoted(schema_.variables[i].name) + ":" + array(i, steps);
    }
    return R"({"zarr_format":3,"node_type":"group","attributes":)" + attributes_text(schema_.attributes, 'f') +
           R"(,"consolidated_metadata":{"kind":"inline","must_understand":false,"metadata":{)" + all + "}}}";
}

std::string ZarrDocuments::root_file() const { return "zarr.json"; }

// In the folder of an array: readers look there for chunks that they know by name, and for nothing else.
std::string ZarrDocuments::unfinished_file() const { return schema_.variables.front().name + "/.zarr.json.new"; }

std::string ZarrDocuments::array_file(std::size_t variable) const {
    return schema_.variables[variable].name + "/zarr.json";
}

std::string ZarrDocuments::data_file(const StoreBlock& block, std::uint64_t step) const {
    const NewVariable& one = schema_.variables[block.variable];
    std::string key = one.name + "/c";
    const bool is_growing = grows(schema_, one);
    if (is_growing) key += "." + std::to_string(step / steps_in_file(block.variable));
    const std::size_t rank = one.dimensions.size() - (is_growing ? 1 : 0);
    for (std::size_t axis = 0; axis < rank; ++axis) {
        key += "." + std::to_string(block.number.empty() ? 0 : block.number[axis]);
    }
    return key;
}

// An entry of ones is of a chunk that is not stored.
std::vector<std::byte> ZarrDocuments::file_head(std::size_t variable) const {
    if (!has_index_in_front(variable)) return {};
    const std::uint64_t chunks = steps_in_file(variable) * product(chunks_of_block(variable));
    return std::vector<std::byte>(chunks * kEntryBytes, std::byte{0xff});
}

StepIndex ZarrDocuments::step_index(const StoreBlock& block, std::uint64_t step, const StoredStep& stored) const {
    StepIndex index;
    std::uint64_t offset = stored.place.offset_bytes;
    std::size_t next = 0;
    for (const bool is_stored : chunks_within(block)) {
        const std::uint64_t bytes = is_stored ? stored.chunks.at(next++) : kNoChunk;
        append_number(index.bytes, is_stored ? offset : kNoChunk, 8);
        append_number(index.bytes, bytes, 8);
        if (is_stored) offset += bytes;
    }
    if (has_index_in_front(block.variable)) {
        index.offset_bytes = step % steps_in_file(block.variable) * index.bytes.size();
        return index;
    }
    append_number(index.bytes, data::crc32c(index.bytes), 4);
    index.offset_bytes = offset;
    return index;
}

}  // namespace penstock::formats
