// The .hmat file as it lies on disk. docs/formats/hmat.md says the same in words, with a reader of its own.
//
// One header page, then the batches, each on a 4 KiB boundary, then tables: leaves, batches, order, a text. Batches
// hold the leaves in the order of the table, which is the order they are multiplied in; within a batch all leaves' tier
// 0 come first, then their tier 1, and so on, so that a product of little accuracy reads a prefix of each batch. All
// numbers are little-endian, lengths and offsets int64. Structs here are copied to and from the file as they are.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "hmatrix/codec/tiers.hpp"

namespace penstock::hmatrix {

static_assert(std::endian::native == std::endian::little, "a .hmat file is little-endian, and so must be its reader");

constexpr char kMagic[8] = {'P', 'S', 'H', 'M', 'A', 'T', '\r', '\n'};
constexpr std::uint32_t kVersion = 1;
constexpr std::int64_t kPage = 4096;      // batches begin at multiples of it
constexpr std::int64_t kTierAlign = 64;   // tiers within a batch too, of this

enum class Encoding : std::uint32_t { fp64 = 0, tiers = 1 };

struct FileHeader {
    char magic[8];
    std::uint32_t version;
    std::uint32_t encoding;
    std::uint32_t tiers;              // 1 for fp64
    std::uint32_t reserved;           // 0
    std::int64_t unknowns;
    std::int64_t leaves;
    std::int64_t low_rank_leaves;
    std::int64_t batches;
    std::int64_t leaf_table_offset;   // LeafRecord[leaves]
    std::int64_t batch_table_offset;  // BatchRecord[batches]
    std::int64_t order_offset;        // int64[unknowns]: position in the matrix -> unknown of the user
    std::int64_t about_offset;        // JSON text: the problem, as the program that built it says
    std::int64_t about_bytes;
    std::int64_t file_bytes;
    std::int64_t fp64_bytes;          // of U, V and dense blocks as doubles, at the accuracy asked for
    std::int64_t rank_sum;            // of low-rank leaves, as approximated
    double eps;                       // asked for
    double eta;
    std::int64_t leaf_size;
    double accuracies[kMaxTiers];     // of a leaf by tiers 0 to i, relative, Frobenius
    double sampled_error;             // ||(H - A) x|| / ||A x|| on sampled rows, as built; negative: not sampled
    std::uint32_t tables_checksum;    // CRC-32 from leaf_table_offset to the end of the file
    std::uint32_t header_checksum;    // CRC-32 of what stands before it
};

struct LeafRecord {
    std::int64_t row;
    std::int64_t column;
    std::int64_t rows;
    std::int64_t columns;
    std::uint32_t low_rank;
    std::uint32_t reserved;
    std::uint16_t counts[kMaxTiers][kDigits];  // see LeafShape; fp64: counts[0][0] is the rank
};

struct BatchRecord {
    std::int64_t offset;               // of its first byte
    std::int64_t bytes;                // without what pads it to a page
    std::int64_t first_leaf;
    std::int64_t leaves;
    std::int64_t tier_begin[kMaxTiers];  // from offset; unused tiers are empty, at `bytes`
    std::int64_t tier_bytes[kMaxTiers];
    std::uint32_t checksums[kMaxTiers];  // CRC-32 of each tier's bytes
    std::uint32_t reserved[2];
};

static_assert(sizeof(FileHeader) == 208 && sizeof(LeafRecord) == 88 && sizeof(BatchRecord) == 160);
static_assert(std::is_trivially_copyable_v<FileHeader> && std::is_trivially_copyable_v<LeafRecord>);

}  // namespace penstock::hmatrix
