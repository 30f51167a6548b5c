// See describe_dataset.hpp.
#include "formats/hdf5/describe_dataset.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "formats/hdf5/element_types.hpp"
#include "penstock/error.hpp"

namespace penstock::formats {
namespace {

constexpr std::uint64_t kMostExtent = std::numeric_limits<std::int64_t>::max();

// Numbers registered with The HDF Group, and what the pipeline calls them.
constexpr std::pair<std::uint64_t, const char*> kKnownFilters[] = {
    {1, "deflate"},        {2, "shuffle"},  {3, "fletcher32"}, {4, "szip"},      {5, "nbit"},
    {6, "scaleoffset"},    {307, "bz2"},    {32000, "lzf"},    {32001, "blosc"}, {32004, "hdf5-lz4"},
    {32008, "bitshuffle"}, {32015, "zstd"}, {32026, "blosc2"},
};

struct DataSpace {
    std::vector<std::uint64_t> extents{}, most{};
};

DataSpace read_space(StructureFields fields) {
    constexpr std::uint64_t kHasMost = 1, kNone = 2;
    const std::uint64_t version = fields.number(1), rank = fields.number(1), flags = fields.number(1);
    if (version != 1 && version != 2) fields.wrong("has a dataspace of version " + std::to_string(version));
    const std::uint64_t kind = fields.number(1);
    if (version == 2 && kind == kNone) throw_unsupported("it has a null dataspace: no elements, and no shape");
    if (version == 1) fields.skip(4);
    DataSpace space;
    for (std::uint64_t i = 0; i < rank; ++i) {
        space.extents.push_back(fields.length());
        if (space.extents.back() > kMostExtent)
            fields.wrong("has a dimension of " + std::to_string(space.extents.back()) + " elements");
    }
    space.most = space.extents;
    for (std::uint64_t i = 0; i < rank && (flags & kHasMost) != 0; ++i) {
        space.most[i] = fields.length();
        if (fields.sizes().length < 8 && space.most[i] == (std::uint64_t{1} << 8 * fields.sizes().length) - 1)
            space.most[i] = kUnlimitedExtent;
        if (space.most[i] < space.extents[i]) fields.wrong("has a dimension that is longer than it may be");
    }
    return space;
}

std::vector<data::Filter> read_filters(StructureFields fields) {
    const std::uint64_t version = fields.number(1), count = fields.number(1);
    if (version != 1 && version != 2) fields.wrong("has filters of version " + std::to_string(version));
    if (version == 1) fields.skip(6);
    constexpr std::uint64_t kFirstWithName = 256;
    std::vector<data::Filter> filters;
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t number = fields.number(2);
        const std::uint64_t name_bytes = version == 1 || number >= kFirstWithName ? fields.number(2) : 0;
        fields.skip(2);
        const std::uint64_t values = fields.number(2);
        fields.skip(version == 1 ? (name_bytes + 7) / 8 * 8 : name_bytes);
        data::Filter filter;
        for (std::uint64_t k = 0; k < values; ++k)
            filter.values.push_back(static_cast<std::uint32_t>(fields.number(4)));
        if (version == 1 && values % 2 != 0) fields.skip(4);
        const auto* known = std::find_if(std::begin(kKnownFilters), std::end(kKnownFilters),
                                         [&](const auto& one) { return one.first == number; });
        if (known == std::end(kKnownFilters))
            throw_unsupported(
                "its chunks went through HDF5 filter " + std::to_string(number) + ", which Penstock does not undo",
                "read it from Python, by the HDF5 library and its plugin");
        filter.name = known->second;
        filters.push_back(std::move(filter));
    }
    return filters;
}

// The stored bytes of the fill value; empty: zeros.
std::span<const std::byte> read_fill(StructureFields fields, std::uint16_t type) {
    constexpr std::uint64_t kHasValue = 0x20;
    if (type == kOldFillMessage) return fields.take(fields.number(4));
    const std::uint64_t version = fields.number(1);
    if (version < 1 || version > 3) fields.wrong("has a fill value of version " + std::to_string(version));
    if (version == 3) return (fields.number(1) & kHasValue) != 0 ? fields.take(fields.number(4)) : fields.take(0);
    fields.skip(2);
    const bool is_defined = fields.number(1) != 0;
    return version == 1 || is_defined ? fields.take(fields.number(4)) : fields.take(0);
}

class Describer {
  public:
    Describer(const MetadataBlocks& blocks, const ObjectHeader& header) : blocks_(blocks), header_(header) {}

    DescribedDataset take() {
        const DataSpace space = read_space(fields_of(kSpaceMessage, "dataspace"));
        StructureFields type_fields = fields_of(kTypeMessage, "type");
        const DescribedType type = read_type(type_fields);
        if (header_.find(kExternalMessage) != nullptr)
            throw_unsupported("its elements lie in external files", "read it from Python");
        const ObjectMessage& message = *header_.find(kLayoutMessage);
        StructureFields layout_fields = message_fields(blocks_, message, holder_);
        found_.layout = read_layout(layout_fields, message.address);
        place(space, type);
        if (header_.find(kFiltersMessage) != nullptr)
            found_.stored.filters = read_filters(fields_of(kFiltersMessage, "filters"));
        fill(type);
        found_.grid.has_filters = !found_.stored.filters.empty();
        return std::move(found_);
    }

  private:
    StructureFields fields_of(std::uint16_t type, const char* what) {
        const ObjectMessage* message = header_.find(type);
        if (message == nullptr) throw_damaged(std::string("a dataset has no ") + what);
        return message_fields(blocks_, *message, holder_);
    }

    // Shape, chunks and where they lie.
    void place(const DataSpace& space, const DescribedType& type) {
        const std::size_t rank = space.extents.size();
        if (rank + type.dimensions.size() > data::kMostDimensions)
            throw_unsupported("it has " + std::to_string(rank + type.dimensions.size()) +
                              " dimensions; Penstock selects in 16");
        std::vector<std::int64_t> shape(space.extents.begin(), space.extents.end());
        shape.insert(shape.end(), type.dimensions.begin(), type.dimensions.end());
        StoredDataset& stored = found_.stored;
        stored = contiguous({}, type.type, shape, 0);
        if (found_.layout.kind == DataLayout::LayoutKind::chunked) return place_chunks(space, type);
        std::uint64_t bytes = type.bytes;
        for (const std::uint64_t extent : space.extents) bytes = checked_product(bytes, extent);
        check_grid();
        const bool is_stored = found_.layout.address.has_value() && bytes != 0;
        if (is_stored && found_.layout.bytes.value_or(bytes) < bytes)
            throw_damaged("its elements take " + std::to_string(bytes) + " bytes, and " +
                          std::to_string(*found_.layout.bytes) + " are stored");
        if (is_stored) stored.offset_bytes = blocks_.place(*found_.layout.address, bytes);
        if (found_.layout.kind == DataLayout::LayoutKind::compact)
            stored.write_refusal = "its elements lie in its header, whose checksum a write would break";
    }

    void place_chunks(const DataSpace& space, const DescribedType& type) {
        std::vector<std::uint64_t>& chunk = found_.layout.chunk;
        if (chunk.size() != space.extents.size() + 1 || chunk.back() != type.bytes)
            throw_damaged("its chunks have other dimensions, or longer elements, than the dataset");
        chunk.pop_back();
        found_.grid = {.extents = space.extents, .most = space.most, .chunk = chunk, .chunk_bytes = type.bytes};
        std::vector<std::int64_t> shape;
        for (const std::uint64_t extent : chunk) {
            if (extent > kMostExtent) throw_damaged("its chunks are longer than any file");
            shape.push_back(static_cast<std::int64_t>(extent));
            found_.grid.chunk_bytes = checked_product(found_.grid.chunk_bytes, extent);
        }
        shape.insert(shape.end(), type.dimensions.begin(), type.dimensions.end());
        StoredDataset& stored = found_.stored;
        stored.grid.strides = data::c_strides(shape, stored.grid.item_bytes);
        stored.grid.chunk_shape = std::move(shape);
        check_grid();
    }

    void check_grid() const {
        try {
            data::check_grid(found_.stored.grid);
        } catch (const Error& error) {
            throw_damaged(error.info().cause);
        }
    }

    // One element's, in this machine's order of bytes.
    void fill(const DescribedType& type) {
        const ObjectMessage* message = header_.find(kFillMessage);
        if (message == nullptr) message = header_.find(kOldFillMessage);
        if (message == nullptr) return;
        const std::span<const std::byte> bytes = read_fill(message_fields(blocks_, *message, holder_), message->type);
        if (bytes.empty()) return;
        if (bytes.size() != type.bytes) throw_damaged("its fill value is no element");
        const std::size_t item = type.type.item_bytes, word = type.type.swap_bytes();
        const auto first = bytes.first(item);
        for (std::size_t at = item; at < bytes.size(); at += item) {
            if (!std::equal(first.begin(), first.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at)))
                throw_unsupported("its fill value differs from element to element of an array", "read it from Python");
        }
        std::vector<std::byte>& fill = found_.stored.fill;
        fill.assign(first.begin(), first.end());
        for (std::size_t at = 0; word != 0 && at < item; at += word)
            std::reverse(fill.begin() + static_cast<std::ptrdiff_t>(at),
                         fill.begin() + static_cast<std::ptrdiff_t>(at + word));
    }

    const MetadataBlocks& blocks_;
    const ObjectHeader& header_;
    ObjectHeader holder_{};
    DescribedDataset found_{};
};

}  // namespace

DescribedDataset describe_dataset(const MetadataBlocks& blocks, const ObjectHeader& header, const std::string& name) {
    DescribedDataset found;
    try {
        found = Describer(blocks, header).take();
    } catch (const BadStructure& bad) {
        if (bad.kind != BadStructure::Wrong::unsupported) throw;
        found = {};
        found.stored = contiguous({}, raw_type(1), {}, 0);
        found.stored.refusal = bad.cause;
    }
    found.stored.name = name;
    return found;
}

}  // namespace penstock::formats
