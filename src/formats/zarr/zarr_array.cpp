// See zarr_array.hpp.
#include "formats/zarr/zarr_array.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>

#include "formats/npy/numpy_type.hpp"

namespace penstock::formats {
namespace {

constexpr std::int64_t kMostZarrItem = std::int64_t{1} << 20;
constexpr std::size_t kMostCodecs = 32;
constexpr std::string_view kSharding = "sharding_indexed";
constexpr std::int64_t kMostOfShard = std::int64_t{1} << 40;  // chunks
constexpr std::string_view kPackers[] = {"gzip", "zlib",   "zstd",       "lz4",    "blosc",
                                         "bz2",  "crc32c", "fletcher32", "shuffle"};

// What is right, and not done here.
struct NotDone {
    std::string cause;
};

const Value& member(const Value& document, const char* name) {
    const Value* found = document.member(name);
    if (found == nullptr) throw BadDocument{std::string("it has no '") + name + "'"};
    return *found;
}

std::vector<std::int64_t> sizes(const Value& value, const char* what, std::int64_t least) {
    const auto found = value.list() != nullptr ? integers(*value.list(), least) : std::nullopt;
    if (!found) throw BadDocument{std::string(what) + " is no list of integers from " + std::to_string(least) + " on"};
    if (found->size() > data::kMostDimensions) {
        throw NotDone{std::string(what) + " has " + std::to_string(found->size()) + " dimensions; 16 are done here"};
    }
    return *found;
}

// Name and configuration of an extension point.
struct Extension {
    std::string name;
    Value configuration{Members{}};
};

Extension extension(const Value& value, const char* what) {
    if (value.text() != nullptr) return {*value.text()};
    const Value* name = value.member("name");
    if (name == nullptr || name->text() == nullptr) throw BadDocument{std::string(what) + " has no name"};
    const Value* configuration = value.member("configuration");
    if (configuration == nullptr) return {*name->text()};
    if (configuration->members() == nullptr)
        throw BadDocument{"the configuration of " + shown(*name->text()) + " is no object"};
    return {*name->text(), *configuration};
}

std::uint32_t length_bytes(const Value* value) {
    const auto bytes = value != nullptr ? value->integer() : std::nullopt;
    if (!bytes || *bytes < 1 || *bytes > kMostZarrItem) throw BadDocument{"elements have 1 to 1048576 bytes"};
    return static_cast<std::uint32_t>(*bytes);
}

ElementType type_of(const Value& value) {
    const Extension written = extension(value, "the data type");
    std::string name = written.name;
    if (name == "complex_float32") name = "complex64";
    if (name == "complex_float64") name = "complex128";
    ElementType type;
    if (type_named(name, type)) return type;
    if (name == "raw_bytes") return raw_type(length_bytes(written.configuration.member("length_bytes")));
    std::uint32_t bits = 0;
    const char* last = name.data() + name.size();
    if (name.size() > 1 && name[0] == 'r' && std::from_chars(name.data() + 1, last, bits).ptr == last &&
        bits % 8 == 0 && bits != 0 && bits / 8 <= kMostZarrItem) {
        return raw_type(bits / 8);
    }
    if (name == "null_terminated_bytes" || name == "fixed_length_utf32") {
        const std::uint32_t bytes = length_bytes(written.configuration.member("length_bytes"));
        if (name == "null_terminated_bytes") return {"S" + std::to_string(bytes), 'S', bytes, 1, false};
        if (bytes % 4 != 0) throw BadDocument{"text of " + std::to_string(bytes) + " bytes has no whole characters"};
        return {"U" + std::to_string(bytes / 4), 'U', bytes, 4, false};
    }
    throw NotDone{"its elements are of type " + shown(name)};
}

data::Filter packer(std::string_view name, const Value& configuration) {
    if (std::find(std::begin(kPackers), std::end(kPackers), name) == std::end(kPackers)) {
        throw NotDone{"codec " + shown(name) + " is not undone here"};
    }
    const Value* location = configuration.member("location");
    if (location != nullptr && location->text() != nullptr && *location->text() == "start") {
        throw NotDone{"the checksum of codec " + shown(name) + " stands before the bytes"};
    }
    if (name != "shuffle") return {std::string(name)};
    const Value* size = configuration.member("elementsize");
    const auto bytes = size != nullptr ? size->integer() : std::optional<std::int64_t>(4);
    if (!bytes || *bytes < 1 || *bytes > 255) throw BadDocument{"the elementsize of codec 'shuffle' is none"};
    return {std::string(name), {static_cast<std::uint32_t>(*bytes)}};
}

// The chain that made the bytes of a chunk.
struct Chain {
    std::vector<std::size_t> order;  // the dimensions as they are stored, the farthest first
    std::optional<bool> big_endian;
    std::vector<data::Filter> packers;
};

void transpose(Chain& chain, const Value& configuration) {
    const Value& written = member(configuration, "order");
    std::vector<std::size_t> before = chain.order;
    if (written.text() != nullptr && (*written.text() == "C" || *written.text() == "F")) {  // of drafts
        if (*written.text() == "F") std::reverse(chain.order.begin(), chain.order.end());
        return;
    }
    const std::vector<std::int64_t> order = sizes(written, "the order of codec 'transpose'", 0);
    std::vector<std::int64_t> sorted = order, all(before.size());
    std::sort(sorted.begin(), sorted.end());
    std::iota(all.begin(), all.end(), 0);
    if (sorted != all) throw BadDocument{"the order of codec 'transpose' is no order of the dimensions"};
    for (std::size_t place = 0; place < order.size(); ++place) {
        chain.order[place] = before[static_cast<std::size_t>(order[place])];
    }
}

Chain chain_of(const Value& codecs, std::size_t dimensions) {
    const List* list = codecs.list();
    if (list == nullptr || list->empty() || list->size() > kMostCodecs) throw BadDocument{"codecs is no short list"};
    Chain chain;
    chain.order.resize(dimensions);
    std::iota(chain.order.begin(), chain.order.end(), std::size_t{0});
    bool has_bytes = false;
    for (const Value& one : *list) {
        const Extension codec = extension(one, "a codec");
        if (codec.name == kSharding) throw NotDone{"its shards hold shards"};
        if (codec.name == "transpose" || codec.name == "bytes") {
            if (has_bytes) throw BadDocument{"codec " + shown(codec.name) + " comes behind the one that makes bytes"};
            if (codec.name == "transpose") {
                transpose(chain, codec.configuration);
                continue;
            }
            has_bytes = true;
            const Value* endian = codec.configuration.member("endian");
            if (endian == nullptr || endian->is_null()) continue;
            const std::string text = endian->text() != nullptr ? *endian->text() : "";
            if (text != "little" && text != "big") throw BadDocument{"endian is " + shown(text)};
            chain.big_endian = text == "big";
            continue;
        }
        std::string_view name = codec.name;
        if (name.starts_with("numcodecs.")) name.remove_prefix(10);
        if (!has_bytes && !name.starts_with("delta"))
            throw NotDone{"codec " + shown(codec.name) + " makes the bytes of its chunks"};
        chain.packers.push_back(packer(name, codec.configuration));
    }
    if (!has_bytes) throw BadDocument{"no codec makes bytes of the array"};
    return chain;
}

// What the array's chunk files are made by, where they are shards.
std::optional<Value> shards_of(const Value& codecs) {
    const List* list = codecs.list();
    if (list == nullptr) return std::nullopt;
    for (const Value& one : *list) {
        const Extension codec = extension(one, "a codec");
        if (codec.name != kSharding) continue;
        if (list->size() != 1) throw NotDone{"its shards are turned or packed as a whole"};
        return codec.configuration;
    }
    return std::nullopt;
}

void take_index_codecs(Sharding& sharding, const Value& codecs) {
    const List* list = codecs.list();
    if (list == nullptr || list->empty() || list->size() > 2) throw BadDocument{"index_codecs is no short list"};
    const Extension bytes = extension(list->front(), "a codec of the index");
    const Value* endian = bytes.configuration.member("endian");
    const std::string text = endian != nullptr && endian->text() != nullptr ? *endian->text() : "little";
    if (bytes.name != "bytes" || (text != "little" && text != "big"))
        throw NotDone{"the index of its shards is packed"};
    sharding.is_index_big_endian = text == "big";
    sharding.is_index_summed = list->size() == 2;
    if (list->size() == 2 && extension(list->back(), "a codec of the index").name != "crc32c") {
        throw NotDone{"the index of its shards is packed"};
    }
}

// `chunk_shape`: that of the shards, and then that of the chunks in them.
Sharding sharding_of(const Value& configuration, std::vector<std::int64_t>& chunk_shape) {
    Sharding sharding;
    const std::vector<std::int64_t> inner = sizes(member(configuration, "chunk_shape"), "the shape in shards", 1);
    if (inner.size() != chunk_shape.size()) throw BadDocument{"its chunks have other dimensions than its shards"};
    if (inner.empty()) throw NotDone{"its shards have no dimensions"};
    std::int64_t all = 1;
    for (std::size_t axis = 0; axis < inner.size(); ++axis) {
        if (chunk_shape[axis] % inner[axis] != 0) throw BadDocument{"its shards hold no whole number of chunks"};
        sharding.chunks.push_back(chunk_shape[axis] / inner[axis]);
        if (sharding.chunks.back() > kMostOfShard / all) throw BadDocument{"its shards are larger than any file"};
        all *= sharding.chunks.back();
    }
    const Value* location = configuration.member("index_location");
    const std::string text = location != nullptr && location->text() != nullptr ? *location->text() : "end";
    if (text != "start" && text != "end") throw BadDocument{"index_location is " + shown(text)};
    sharding.is_index_first = text == "start";
    take_index_codecs(sharding, member(configuration, "index_codecs"));
    chunk_shape = inner;
    return sharding;
}

void lay_out(StoredDataset& dataset, const Chain& chain) {
    data::StoredGrid& grid = dataset.grid;
    std::vector<std::int64_t> stored;
    for (const std::size_t axis : chain.order) stored.push_back(grid.chunk_shape[axis]);
    grid.item_bytes = dataset.type.item_bytes;
    const std::vector<std::int64_t> strides = data::c_strides(stored, grid.item_bytes);
    grid.strides.resize(stored.size());
    for (std::size_t place = 0; place < stored.size(); ++place) grid.strides[chain.order[place]] = strides[place];
    dataset.filters = chain.packers;
    try {
        data::check_grid(grid);
    } catch (const Error&) {
        throw BadDocument{"shape " + shown(grid.shape) + " in chunks of " + shown(grid.chunk_shape) +
                          " is larger than any file system"};
    }
}

// Runs what fills the array in, and turns what is wrong with it into an Error, what is not done into a refusal.
template <typename Fill>
ZarrArray judged(const Subject& subject, Fill&& fill_in) {
    ZarrArray array;
    array.dataset.name = subject.dataset;
    try {
        fill_in(array);
    } catch (const NotDone& missing) {
        array.dataset = contiguous(subject.dataset, raw_type(1), {}, 0);
        array.dataset.refusal = missing.cause + "; Penstock reads it from Python";
    } catch (const BadDocument& bad) {
        throw damaged(subject, bad.cause);
    }
    return array;
}

void need_version(const Value& document, std::int64_t version) {
    if (member(document, "zarr_format").integer() != version) {
        throw BadDocument{"zarr_format is not " + std::to_string(version)};
    }
}

std::vector<std::int64_t> chunks_of(const Value& value, std::size_t dimensions) {
    std::vector<std::int64_t> chunks = sizes(value, "the shape of its chunks", 1);
    if (chunks.size() != dimensions) throw BadDocument{"its chunks have another number of dimensions than its shape"};
    return chunks;
}

std::vector<std::byte> checked_fill(const Value& value, const ElementType& type) {
    try {
        return fill_of(value, type);
    } catch (const BadDocument& bad) {
        throw NotDone{bad.cause};
    }
}

ChunkKeys keys_of(const Value& value) {
    const Extension written = extension(value, "chunk_key_encoding");
    if (written.name != "default" && written.name != "v2") throw NotDone{"chunk key encoding " + shown(written.name)};
    const Value* separator = written.configuration.member("separator");
    ChunkKeys keys{written.name == "default" ? "c" : "", written.name == "default" ? "/" : "."};
    if (separator != nullptr) keys.separator = separator->text() != nullptr ? *separator->text() : "";
    if (keys.separator != "/" && keys.separator != ".") throw BadDocument{"the separator of chunk keys is none"};
    return keys;
}

void check_understood(const Value& document) {
    constexpr std::string_view known[] = {
        "zarr_format", "node_type", "shape",      "data_type",       "chunk_grid",          "chunk_key_encoding",
        "fill_value",  "codecs",    "attributes", "dimension_names", "storage_transformers"};
    for (const auto& [name, value] : *document.members()) {
        if (std::find(std::begin(known), std::end(known), name) != std::end(known)) continue;
        const Value* must = value.member("must_understand");
        if (must == nullptr || must->boolean() == nullptr || *must->boolean())
            throw NotDone{"it has the member " + shown(name)};
    }
    const Value* transformers = document.member("storage_transformers");
    if (transformers != nullptr && transformers->list() != nullptr && !transformers->list()->empty()) {
        throw NotDone{"it has storage transformers"};
    }
}

}  // namespace

std::string ChunkKeys::path(std::span<const std::int64_t> cell) const {
    std::string path = prefix;
    for (const std::int64_t number : cell) path += (path.empty() ? "" : separator) + std::to_string(number);
    return path.empty() ? "0" : path;
}

ZarrArray parse_zarr3(const Subject& subject, const Value& document) {
    return judged(subject, [&](ZarrArray& array) {
        need_version(document, 3);
        StoredDataset& dataset = array.dataset;
        dataset.grid.shape = sizes(member(document, "shape"), "shape", 0);
        check_understood(document);
        const Extension grid = extension(member(document, "chunk_grid"), "chunk_grid");
        if (grid.name != "regular") throw NotDone{"its chunk grid is " + shown(grid.name)};
        dataset.grid.chunk_shape = chunks_of(member(grid.configuration, "chunk_shape"), dataset.grid.shape.size());
        array.keys = keys_of(member(document, "chunk_key_encoding"));
        dataset.type = type_of(member(document, "data_type"));
        const Value& codecs = member(document, "codecs");
        const std::optional<Value> shards = shards_of(codecs);
        if (shards) array.sharding = sharding_of(*shards, dataset.grid.chunk_shape);
        const Chain chain = chain_of(shards ? member(*shards, "codecs") : codecs, dataset.grid.shape.size());
        if (!chain.big_endian && dataset.type.word_bytes > 1)
            throw BadDocument{"codec 'bytes' does not say the order of bytes"};
        dataset.type = stored_in(dataset.type, chain.big_endian.value_or(false));
        dataset.fill = checked_fill(member(document, "fill_value"), dataset.type);
        lay_out(dataset, chain);
    });
}

ZarrArray parse_zarr2(const Subject& subject, const Value& document) {
    return judged(subject, [&](ZarrArray& array) {
        need_version(document, 2);
        StoredDataset& dataset = array.dataset;
        dataset.grid.shape = sizes(member(document, "shape"), "shape", 0);
        dataset.grid.chunk_shape = chunks_of(member(document, "chunks"), dataset.grid.shape.size());
        const Value* separator = document.member("dimension_separator");
        array.keys = {"", separator == nullptr ? "." : separator->text() != nullptr ? *separator->text() : ""};
        if (array.keys.separator != "/" && array.keys.separator != ".")
            throw BadDocument{"dimension_separator is none"};
        const Value& type = member(document, "dtype");
        if (type.text() == nullptr) throw NotDone{"its elements have members"};
        try {
            dataset.type = numpy_type(*type.text());
        } catch (const BadDocument&) {
            throw NotDone{"its elements are of type " + shown(*type.text())};
        }
        if (dataset.type.item_bytes == 0) throw NotDone{"its elements have no bytes"};
        Chain chain;
        chain.order.resize(dataset.grid.shape.size());
        std::iota(chain.order.begin(), chain.order.end(), std::size_t{0});
        const Value* order = document.member("order");
        if (order != nullptr && order->text() != nullptr && *order->text() == "F")
            std::reverse(chain.order.begin(), chain.order.end());
        const Value* filters = document.member("filters");
        List steps = filters != nullptr && filters->list() != nullptr ? *filters->list() : List{};
        const Value* compressor = document.member("compressor");
        if (compressor != nullptr && !compressor->is_null()) steps.push_back(*compressor);
        if (steps.size() > kMostCodecs) throw BadDocument{"filters is no short list"};
        for (const Value& one : steps) {
            const Value* id = one.member("id");
            if (id == nullptr || id->text() == nullptr) throw BadDocument{"a filter has no id"};
            chain.packers.push_back(packer(*id->text(), one));
        }
        const Value* fill = document.member("fill_value");
        dataset.fill = fill == nullptr ? std::vector<std::byte>{} : checked_fill(*fill, dataset.type);
        lay_out(dataset, chain);
    });
}

}  // namespace penstock::formats
