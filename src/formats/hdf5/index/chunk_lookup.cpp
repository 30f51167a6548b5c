// See chunk_lookup.hpp.
#include "formats/hdf5/index/chunk_lookup.hpp"

#include <algorithm>
#include <string>

#include "formats/hdf5/index/chunk_arrays.hpp"
#include "formats/hdf5/index/version2_tree.hpp"

namespace penstock::formats {
namespace {

constexpr std::uint64_t kCompactLayout = 0, kContiguous = 1, kChunked = 2, kVirtual = 3;
constexpr std::uint64_t kEveryFilter = ~std::uint32_t{0};

void add_chunk(StructureFields& fields, DataLayout& layout, std::uint64_t count, std::uint64_t bytes) {
    if (count < 2) fields.wrong("says that chunks have no dimension");
    for (std::uint64_t i = 0; i < count; ++i) {
        layout.chunk.push_back(fields.number(bytes));
        if (layout.chunk.back() == 0) fields.wrong("says that chunks have no elements");
    }
}

// Versions 1 and 2.
void read_first(StructureFields& fields, DataLayout& layout) {
    const std::uint64_t rank = fields.number(1), kind = fields.number(1);
    fields.skip(5);
    if (kind > kChunked) fields.wrong("is of kind " + std::to_string(kind));
    layout.kind = static_cast<DataLayout::LayoutKind>(kind);
    if (kind != kCompactLayout) layout.address = fields.address();
    if (kind == kChunked) {
        add_chunk(fields, layout, rank, 4);
    } else {
        fields.skip(4 * rank);
    }
}

void read_index(StructureFields& fields, DataLayout& layout) {
    constexpr std::uint64_t kSingle = 1, kVersion2Tree = 5;
    constexpr std::uint64_t kEdgesUnfiltered = 1, kSingleFiltered = 2;
    const std::uint64_t flags = fields.number(1), count = fields.number(1), width = fields.number(1);
    if (width < 1 || width > 8) fields.wrong("has extents of " + std::to_string(width) + " bytes");
    add_chunk(fields, layout, count, width);
    const std::uint64_t index = fields.number(1);
    if (index < kSingle || index > kVersion2Tree)
        throw_unsupported("its chunks have an index of kind " + std::to_string(index), "h5repack writes a known one");
    layout.index = static_cast<DataLayout::ChunkIndexKind>(index);
    layout.edges_unfiltered = (flags & kEdgesUnfiltered) != 0;
    if (index == kSingle && (flags & kSingleFiltered) != 0) {
        layout.bytes = fields.length();
        layout.skipped = static_cast<std::uint32_t>(fields.number(4));
    }
    constexpr std::uint64_t parameter_bytes[] = {0, 0, 0, 1, 5, 6};
    fields.skip(parameter_bytes[index]);
    layout.address = fields.address();
}

// A node of the B-tree of version 1: keys, which are places of chunks, around the addresses of what lies between them.
class ChunkTree {
  public:
    ChunkTree(const MetadataBlocks& blocks, const ChunkCounting& grid, std::span<const std::uint64_t> cell)
        : blocks_(blocks) {
        for (std::size_t axis = 0; axis < cell.size(); ++axis) wanted_.push_back(cell[axis] * grid.chunk[axis]);
    }

    std::optional<StoredChunkPlace> find(std::uint64_t address) const {
        constexpr std::uint64_t kMostTreeLevels = 256;
        for (std::uint64_t above = kMostTreeLevels; above > 0;) {
            const std::uint64_t head_bytes = 8 + 2 * blocks_.sizes().address;
            const BlockBytes first = blocks_.block(address, head_bytes, kChunkNodeWhat);
            StructureFields head = blocks_.fields(first, kChunkNodeWhat);
            need_signature(head, "TREE");
            if (head.number(1) != 1) head.wrong("has a node of another type");
            const std::uint64_t level = head.number(1), entries = head.number(2);
            if (level >= above) head.wrong("has a node on a wrong level");
            const std::uint64_t bytes = head_bytes + entries * entry_bytes() + key_bytes();
            const BlockBytes node = blocks_.block(address, bytes, kChunkNodeWhat);
            const std::uint64_t at = last_not_behind(node, entries);
            if (at == entries) return std::nullopt;
            StructureFields fields = key(node, at);
            StoredChunkPlace place{.bytes = fields.number(4)};
            place.skipped = static_cast<std::uint32_t>(fields.number(4));
            const int side = compare(fields);
            fields.skip(8);
            place.address = fields.needed_address();
            if (level == 0) return side == 0 ? std::optional(place) : std::nullopt;
            address = place.address;
            above = level;
        }
        return std::nullopt;
    }

  private:
    static constexpr const char* kChunkNodeWhat = "a B-tree of chunks";

    std::uint64_t key_bytes() const { return 8 + 8 * (wanted_.size() + 1); }
    std::uint64_t entry_bytes() const { return key_bytes() + blocks_.sizes().address; }

    // A key and the address behind it.
    StructureFields key(const BlockBytes& node, std::uint64_t number) const {
        const std::uint64_t begin = 8 + 2 * blocks_.sizes().address + number * entry_bytes();
        return {std::span(*node).subspan(begin, entry_bytes()), blocks_.sizes(), kChunkNodeWhat};
    }

    // -1, 0 or 1: the place of the key lies before the one that is wanted, is it, or lies behind it.
    int compare(StructureFields& fields) const {
        int side = 0;
        for (const std::uint64_t wanted : wanted_) {
            const std::uint64_t found = fields.number(8);
            if (side == 0 && found != wanted) side = found < wanted ? -1 : 1;
        }
        return side;
    }

    // The last key that does not lie behind the wanted one; `entries`: all do.
    std::uint64_t last_not_behind(const BlockBytes& node, std::uint64_t entries) const {
        std::uint64_t low = 0, high = entries;
        while (low < high) {
            const std::uint64_t middle = (low + high) / 2;
            StructureFields fields = key(node, middle);
            fields.skip(8);
            compare(fields) <= 0 ? low = middle + 1 : high = middle;
        }
        return low == 0 ? entries : low - 1;
    }

    const MetadataBlocks& blocks_;
    std::vector<std::uint64_t> wanted_{};
};

std::optional<StoredChunkPlace> find_in_version2_tree(const MetadataBlocks& blocks, std::uint64_t header,
                                                      const ChunkCounting& grid, std::span<const std::uint64_t> cell) {
    constexpr std::uint64_t kPlain = 10, kFiltered = 11;
    const Version2Tree tree(blocks, header);
    const std::uint64_t address = blocks.sizes().address, fixed = address + 8 * cell.size();
    const std::uint64_t size_bytes = tree.record_bytes() - fixed - 4;
    const bool is_known = grid.has_filters
                              ? tree.type() == kFiltered && tree.record_bytes() > fixed + 4 && size_bytes <= 8
                              : tree.type() == kPlain && tree.record_bytes() == fixed;
    if (!is_known) throw_damaged("the index of its chunks is of another type");
    const auto read = [&](StructureFields& record) {
        StoredChunkPlace place{.address = record.needed_address(), .bytes = grid.chunk_bytes};
        if (grid.has_filters) {
            place.bytes = record.number(size_bytes);
            place.skipped = static_cast<std::uint32_t>(record.number(4));
        }
        return place;
    };
    const auto found = tree.find([&](StructureFields record) {
        read(record);
        for (const std::uint64_t wanted : cell) {
            const std::uint64_t there = record.number(8);
            if (there != wanted) return there < wanted ? 1 : -1;
        }
        return 0;
    });
    if (!found) return std::nullopt;
    StructureFields record(*found, blocks.sizes(), "a record of an index of chunks");
    return read(record);
}

std::optional<StoredChunkPlace> find_in_index(const MetadataBlocks& blocks, const DataLayout& layout,
                                              const ChunkCounting& grid, std::span<const std::uint64_t> cell) {
    const std::uint64_t address = *layout.address;
    switch (layout.index) {
        case DataLayout::ChunkIndexKind::tree:
            return ChunkTree(blocks, grid, cell).find(address);
        case DataLayout::ChunkIndexKind::single:
            return StoredChunkPlace{address, layout.bytes.value_or(grid.chunk_bytes), layout.skipped};
        case DataLayout::ChunkIndexKind::implicit:
            return StoredChunkPlace{address + checked_product(chunk_number(grid, cell), grid.chunk_bytes),
                                    grid.chunk_bytes};
        case DataLayout::ChunkIndexKind::fixed_array:
            return find_in_fixed_array(blocks, address, grid, chunk_number(grid, cell));
        case DataLayout::ChunkIndexKind::extensible_array:
            return find_in_extensible_array(blocks, address, grid, growing_chunk_number(grid, cell));
        default:
            return find_in_version2_tree(blocks, address, grid, cell);
    }
}

}  // namespace

DataLayout read_layout(StructureFields& fields, std::uint64_t body_address) {
    constexpr std::uint64_t kFirstWithIndexes = 4, kMostLayout = 5;
    DataLayout layout;
    const std::uint64_t version = fields.number(1);
    if (version < 1 || version > kMostLayout)
        throw_unsupported("its layout has version " + std::to_string(version) + "; Penstock knows 1 to 5");
    if (version < 3) {
        read_first(fields, layout);
    } else {
        const std::uint64_t kind = fields.number(1);
        if (kind == kVirtual)
            throw_unsupported("it is a virtual dataset, whose elements lie in others", "read it from Python");
        if (kind > kVirtual) fields.wrong("is of kind " + std::to_string(kind));
        layout.kind = static_cast<DataLayout::LayoutKind>(kind);
        if (kind == kContiguous) {
            layout.address = fields.address();
            layout.bytes = fields.length();
        } else if (kind == kChunked && version < kFirstWithIndexes) {
            const std::uint64_t count = fields.number(1);
            layout.address = fields.address();
            add_chunk(fields, layout, count, 4);
        } else if (kind == kChunked) {
            read_index(fields, layout);
        }
    }
    if (layout.kind == DataLayout::LayoutKind::compact) {
        layout.bytes = fields.number(version < 3 ? 4 : 2);
        layout.address = body_address + fields.at();
        fields.skip(*layout.bytes);
    }
    return layout;
}

std::optional<StoredChunkPlace> find_chunk(const MetadataBlocks& blocks, const DataLayout& layout,
                                           const ChunkCounting& grid, std::span<const std::uint64_t> cell) {
    if (!layout.address) return std::nullopt;
    std::optional<StoredChunkPlace> place = find_in_index(blocks, layout, grid, cell);
    if (place && layout.edges_unfiltered && is_at_edge(grid, cell)) place->skipped = kEveryFilter;
    return place;
}

}  // namespace penstock::formats
