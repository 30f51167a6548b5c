// ChunkCounting: how the chunks of an HDF5 dataset are counted, which all indexes of them share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace penstock::formats {

struct ChunkCounting {
    std::vector<std::uint64_t> extents{};  // elements of the dataset; of its own dimensions, without an array type's
    std::vector<std::uint64_t> most{};     // elements that it may grow to
    std::vector<std::uint64_t> chunk{};    // elements of a chunk
    std::uint64_t chunk_bytes = 0;         // of a chunk before filters
    bool has_filters = false;
};

inline constexpr std::uint64_t kUnlimitedExtent = ~std::uint64_t{0};  // of ChunkCounting::most

// Where the bytes of a chunk lie.
struct StoredChunkPlace {
    std::uint64_t address = 0, bytes = 0;
    std::uint32_t skipped = 0;  // a bit for each filter that the chunk did not go through
};

// The number of a chunk in C order of all chunks that the dataset may have. Throws BadStructure beyond 64 bits.
std::uint64_t chunk_number(const ChunkCounting& grid, std::span<const std::uint64_t> cell);
// As chunk_number(), of a grid with one unlimited dimension, which comes first.
std::uint64_t growing_chunk_number(const ChunkCounting& grid, std::span<const std::uint64_t> cell);
// Whether elements of the chunk lie outside of the dataset.
bool is_at_edge(const ChunkCounting& grid, std::span<const std::uint64_t> cell);

}  // namespace penstock::formats
