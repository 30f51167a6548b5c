// See chunk_arrays.hpp.
#include "formats/hdf5/index/chunk_arrays.hpp"

#include <algorithm>
#include <bit>
#include <string>

namespace penstock::formats {
namespace {

constexpr std::uint64_t kSumBytesOfBlock = 4, kMaskBytes = 4;
constexpr std::uint64_t kMostEntryBytes = 64;

// Whether a bit is set; the first of a byte is its highest.
bool bit_of(std::span<const std::byte> bits, std::uint64_t number) {
    const std::uint64_t byte = number / 8;
    if (byte >= bits.size()) throw_damaged("an index of chunks has a page that its map has not");
    return (std::to_integer<unsigned>(bits[byte]) >> (7 - number % 8) & 1) != 0;
}

// What both kinds of array say of their entries.
struct EntryShape {
    const ChunkCounting& grid;
    std::uint64_t bytes = 0;  // of an entry

    void check(StructureFields& fields, std::uint64_t is_filtered) const {
        const std::uint64_t address = fields.sizes().address;
        const bool has_size = is_filtered == 1;
        const bool fits =
            has_size ? bytes > address + kMaskBytes && bytes - address - kMaskBytes <= 8 : bytes == address;
        if (is_filtered > 1 || has_size != grid.has_filters || !fits)
            fields.wrong("has entries of " + std::to_string(bytes) + " bytes");
    }

    std::optional<StoredChunkPlace> read(StructureFields fields) const {
        const std::optional<std::uint64_t> address = fields.address();
        if (!address) return std::nullopt;
        StoredChunkPlace place{*address, grid.chunk_bytes};
        if (!grid.has_filters) return place;
        place.bytes = fields.number(bytes - fields.sizes().address - kMaskBytes);
        place.skipped = static_cast<std::uint32_t>(fields.number(kMaskBytes));
        return place;
    }
};

std::optional<StoredChunkPlace> entry_of(const MetadataBlocks& blocks, const EntryShape& shape, const BlockBytes& block,
                                         std::uint64_t at) {
    StructureFields fields = blocks.fields(block, "an index of chunks");
    fields.skip(at);
    return shape.read({fields.take(shape.bytes), blocks.sizes(), "an entry of an index of chunks"});
}

// A page of entries, which has a checksum of its own.
std::optional<StoredChunkPlace> entry_of_page(const MetadataBlocks& blocks, const EntryShape& shape,
                                              std::uint64_t address, std::pair<std::uint64_t, std::uint64_t> entries) {
    const auto [number, all] = entries;
    const BlockBytes page = blocks.checked(address, checked_product(all, shape.bytes) + kSumBytesOfBlock, "");
    return entry_of(blocks, shape, page, number * shape.bytes);
}

struct ExtensibleArray {
    ExtensibleArray(const MetadataBlocks& of, std::uint64_t header, const ChunkCounting& grid)
        : blocks(of), entry{grid} {
        const FieldSizes sizes = blocks.sizes();
        const BlockBytes block = blocks.checked(header, 12 + 6 * sizes.length + sizes.address + 4, "EAHD");
        StructureFields fields = blocks.fields(block, kArrayWhat);
        fields.skip(4);
        if (fields.number(1) != 0) throw_unsupported("an index of chunks has a version that is not known");
        const std::uint64_t is_filtered = fields.number(1);
        entry.bytes = fields.number(1);
        most_bits = fields.number(1);
        first_entries = fields.number(1);
        block_entries = fields.number(1);
        least_pointers = fields.number(1);
        page_bits = fields.number(1);
        fields.skip(6 * sizes.length);
        index_block = fields.address();
        entry.check(fields, is_filtered);
        const bool is_sane = std::has_single_bit(block_entries) && std::has_single_bit(least_pointers) &&
                             most_bits <= 64 && page_bits < 32 && log2_below(block_entries) <= most_bits &&
                             row_count() >= direct_rows();
        if (!is_sane) fields.wrong("has sizes that make no sense");
    }

    // Blocks of entries come in rows: of row u there are 2^(u/2), each of 2^((u+1)/2) * block_entries entries.
    std::uint64_t row_count() const { return 1 + most_bits - log2_below(block_entries); }
    std::uint64_t direct_rows() const { return 2 * std::uint64_t{log2_below(least_pointers)}; }
    static std::uint64_t blocks_in(std::uint64_t row) { return std::uint64_t{1} << row / 2; }
    std::uint64_t entries_in(std::uint64_t row) const { return block_entries << (row + 1) / 2; }
    std::uint64_t first_entry(std::uint64_t row) const { return ((std::uint64_t{1} << row) - 1) * block_entries; }
    std::uint64_t offset_bytes() const { return (most_bits + 7) / 8; }
    std::uint64_t head_bytes() const { return 6 + blocks.sizes().address; }

    std::optional<StoredChunkPlace> find(std::uint64_t number) const {
        if (!index_block) return std::nullopt;
        const std::uint64_t direct_blocks = 2 * (least_pointers - 1), rows = row_count() - direct_rows();
        const std::uint64_t first_bytes = first_entries * entry.bytes;
        const std::uint64_t pointers_bytes = (direct_blocks + rows) * blocks.sizes().address;
        const BlockBytes block =
            blocks.checked(*index_block, head_bytes() + first_bytes + pointers_bytes + kSumBytesOfBlock, "EAIB");
        if (number < first_entries) return entry_of(blocks, entry, block, head_bytes() + number * entry.bytes);
        const std::uint64_t behind = number - first_entries;
        const std::uint64_t row = log2_below(behind / block_entries + 1);
        if (row >= row_count()) throw_damaged("a chunk has a number that its index has no place for");
        const std::uint64_t in_row = behind - first_entry(row);
        const std::uint64_t in_blocks = in_row / entries_in(row), in_block = in_row % entries_in(row);
        StructureFields fields = blocks.fields(block, kArrayWhat);
        fields.skip(head_bytes() + first_bytes);
        if (row < direct_rows()) {
            // Blocks of the rows before: 1, 1, 2, 2, 4, 4, ...
            std::uint64_t before = 0;
            for (std::uint64_t other = 0; other < row; ++other) before += blocks_in(other);
            fields.skip((before + in_blocks) * blocks.sizes().address);
            return in_data_block(fields.address(), entries_in(row), in_block);
        }
        fields.skip((direct_blocks + row - direct_rows()) * blocks.sizes().address);
        const std::optional<std::uint64_t> upper = fields.address();
        if (!upper) return std::nullopt;
        return in_upper_block(*upper, row, {in_blocks, in_block});
    }

    std::optional<StoredChunkPlace> in_data_block(const std::optional<std::uint64_t>& address, std::uint64_t entries,
                                                  std::uint64_t number) const {
        if (!address) return std::nullopt;
        const std::uint64_t head = head_bytes() + offset_bytes();
        const BlockBytes block = blocks.checked(*address, head + entries * entry.bytes + kSumBytesOfBlock, "EADB");
        return entry_of(blocks, entry, block, head + number * entry.bytes);
    }

    // `place`: the block of the row, and the entry in it.
    std::optional<StoredChunkPlace> in_upper_block(std::uint64_t address, std::uint64_t row,
                                                   std::pair<std::uint64_t, std::uint64_t> place) const {
        const std::uint64_t entries = entries_in(row), page_entries = std::uint64_t{1} << page_bits;
        const std::uint64_t pages = entries > page_entries ? entries / page_entries : 0;
        const std::uint64_t map_bytes = checked_product(blocks_in(row), (pages + 7) / 8);
        const std::uint64_t head = head_bytes() + offset_bytes();
        const std::uint64_t pointers = checked_product(blocks_in(row), blocks.sizes().address);
        const BlockBytes block = blocks.checked(address, head + map_bytes + pointers + kSumBytesOfBlock, "EASB");
        StructureFields fields = blocks.fields(block, kArrayWhat);
        fields.skip(head);
        const std::span<const std::byte> map = fields.take(map_bytes);
        fields.skip(place.first * blocks.sizes().address);
        const std::optional<std::uint64_t> data = fields.address();
        if (pages == 0 || !data) return in_data_block(data, entries, place.second);
        const std::uint64_t page = place.second / page_entries;
        if (!bit_of(map, place.first * pages + page)) return std::nullopt;
        const std::uint64_t page_bytes = checked_product(page_entries, entry.bytes) + kSumBytesOfBlock;
        const std::uint64_t begin = *data + head + kSumBytesOfBlock + checked_product(page, page_bytes);
        return entry_of_page(blocks, entry, begin, {place.second % page_entries, page_entries});
    }

    static constexpr const char* kArrayWhat = "an extensible array of chunks";
    const MetadataBlocks& blocks;
    EntryShape entry;
    std::uint64_t most_bits = 0, first_entries = 0, block_entries = 0, least_pointers = 0, page_bits = 0;
    std::optional<std::uint64_t> index_block{};
};

}  // namespace

std::optional<StoredChunkPlace> find_in_fixed_array(const MetadataBlocks& blocks, std::uint64_t header,
                                                    const ChunkCounting& grid, std::uint64_t number) {
    constexpr const char* kFixedWhat = "a fixed array of chunks";
    const FieldSizes sizes = blocks.sizes();
    const BlockBytes head = blocks.checked(header, 8 + sizes.length + sizes.address + 4, "FAHD");
    StructureFields fields = blocks.fields(head, kFixedWhat);
    fields.skip(4);
    if (fields.number(1) != 0) throw_unsupported("an index of chunks has a version that is not known");
    const std::uint64_t is_filtered = fields.number(1);
    const EntryShape entry{grid, fields.number(1)};
    const std::uint64_t page_bits = fields.number(1), entries = fields.length();
    const std::optional<std::uint64_t> data = fields.address();
    entry.check(fields, is_filtered);
    if (page_bits >= 32 || entries > ~std::uint64_t{0} / kMostEntryBytes) fields.wrong("has sizes that make no sense");
    if (number >= entries) throw_damaged("a chunk has a number that its index has no place for");
    if (!data) return std::nullopt;
    const std::uint64_t begin = 6 + sizes.address, page_entries = std::uint64_t{1} << page_bits;
    if (entries <= page_entries) {
        const BlockBytes block = blocks.checked(*data, begin + entries * entry.bytes + kSumBytesOfBlock, "FADB");
        return entry_of(blocks, entry, block, begin + number * entry.bytes);
    }
    const std::uint64_t pages = (entries + page_entries - 1) / page_entries, map_bytes = (pages + 7) / 8;
    const BlockBytes block = blocks.checked(*data, begin + map_bytes + kSumBytesOfBlock, "FADB");
    const std::uint64_t page = number / page_entries;
    if (!bit_of(std::span(*block).subspan(begin, map_bytes), page)) return std::nullopt;
    const std::uint64_t page_bytes = page_entries * entry.bytes + kSumBytesOfBlock;
    const std::uint64_t in_page = std::min(page_entries, entries - page * page_entries);
    return entry_of_page(blocks, entry, *data + block->size() + page * page_bytes, {number % page_entries, in_page});
}

std::optional<StoredChunkPlace> find_in_extensible_array(const MetadataBlocks& blocks, std::uint64_t header,
                                                         const ChunkCounting& grid, std::uint64_t number) {
    return ExtensibleArray(blocks, header, grid).find(number);
}

}  // namespace penstock::formats
