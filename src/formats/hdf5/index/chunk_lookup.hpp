// DataLayout: how the elements of an HDF5 dataset lie in its file, and where each chunk does.
//
// All indexes of chunks that HDF5 has: the B-tree of version 1, and those of HDF5 1.10: a single chunk, chunks one
// behind the other, fixed and extensible arrays, and the B-tree of version 2. What must stay true: a look-up reads as
// many nodes as the index has levels, however many chunks there are.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "formats/hdf5/index/chunk_grid.hpp"
#include "formats/hdf5/object_header.hpp"

namespace penstock::formats {

struct DataLayout {
    enum class LayoutKind : std::uint8_t { compact, contiguous, chunked };
    // As the message of version 4 counts them; `tree` is that of version 1.
    enum class ChunkIndexKind : std::uint8_t { tree, single, implicit, fixed_array, extensible_array, version2_tree };
    LayoutKind kind = LayoutKind::contiguous;
    ChunkIndexKind index = ChunkIndexKind::tree;
    std::optional<std::uint64_t> address{};  // of the elements, or of the index; nothing: none is stored
    std::optional<std::uint64_t> bytes{};    // of the elements; of a chunk that is single and went through filters
    std::uint32_t skipped = 0;               // filters of a single chunk
    bool edges_unfiltered = false;           // chunks at the edge did not go through filters
    std::vector<std::uint64_t> chunk{};      // and the bytes of an element behind it
};

// Throws BadStructure. `body_address`: of the message, in which compact elements lie.
DataLayout read_layout(StructureFields& fields, std::uint64_t body_address);
// Nothing: the chunk is not stored. Requires: kind is chunked, and the grid is that of the layout. Throws BadStructure.
std::optional<StoredChunkPlace> find_chunk(const MetadataBlocks& blocks, const DataLayout& layout,
                                           const ChunkCounting& grid, std::span<const std::uint64_t> cell);

}  // namespace penstock::formats
