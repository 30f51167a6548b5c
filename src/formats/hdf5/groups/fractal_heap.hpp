// FractalHeap: where a group of many members keeps its links: a heap of blocks whose sizes double from row to row.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/hdf5/metadata_blocks.hpp"

namespace penstock::formats {

class FractalHeap {
  public:
    // Throws BadStructure.
    FractalHeap(const MetadataBlocks& blocks, std::uint64_t header);
    std::uint64_t id_bytes() const noexcept { return id_bytes_; }
    // The object of that number. Throws BadStructure.
    std::vector<std::byte> object(std::span<const std::byte> id) const;

  private:
    struct HeapRow {
        std::uint64_t begin = 0, block_bytes = 0;  // of the row, in its indirect block; of one of its blocks
    };
    HeapRow row(std::uint64_t number) const;
    // The direct block that has the byte `offset` of the heap, and where it begins in the heap.
    struct DirectBlock {
        std::uint64_t address = 0, bytes = 0, begin = 0;
    };
    DirectBlock direct_block(std::uint64_t offset) const;

    const MetadataBlocks& blocks_;
    std::uint64_t id_bytes_ = 0, width_ = 0, first_block_bytes_ = 0, most_direct_bytes_ = 0;
    std::uint64_t offset_bytes_ = 0, length_bytes_ = 0, root_rows_ = 0;
    std::uint64_t root_ = 0;
    bool has_sums_ = false;
};

}  // namespace penstock::formats
