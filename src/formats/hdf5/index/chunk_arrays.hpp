// Indexes of chunks that are arrays: FixedArray, of a dataset that cannot grow, and ExtensibleArray, of one that grows
// in one dimension. Each finds the entry of a chunk by its number, without a search.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/hdf5/index/chunk_grid.hpp"
#include "formats/hdf5/metadata_blocks.hpp"

namespace penstock::formats {

// Nothing: the chunk is not stored. Throws BadStructure.
std::optional<StoredChunkPlace> find_in_fixed_array(const MetadataBlocks& blocks, std::uint64_t header,
                                                    const ChunkCounting& grid, std::uint64_t number);
std::optional<StoredChunkPlace> find_in_extensible_array(const MetadataBlocks& blocks, std::uint64_t header,
                                                         const ChunkCounting& grid, std::uint64_t number);

}  // namespace penstock::formats
