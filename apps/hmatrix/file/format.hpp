// The layout of a .hmat file on disk. docs/formats/hmat.md describes the same layout and has an independent reader.
//
// The file holds one header page, then the batches, each on a 4 KiB boundary, then the tables: leaves, batches, order,
// and a text. Batches hold the leaves in the order of the leaf table, which is the order of multiplication. Within a
// batch, tier 0 of all leaves comes first, then tier 1 of all leaves, and so on. A product of low accuracy therefore
// reads a prefix of each batch. All numbers are little-endian; lengths and offsets are int64. The writer and the reader
// copy these structs byte for byte.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "hmatrix/codec/tiers.hpp"

namespace penstock::hmatrix {

static_assert(std::endian::native == std::endian::little, "a .hmat file is little-endian, and so must be its reader");

constexpr char kMagic[8] = {'P', 'S', 'H', 'M', 'A', 'T', '\r', '\n'};
constexpr std::uint32_t kVersion = 1;
constexpr std::int64_t kPage = 4096;     // bytes; every batch begins at a multiple of it
constexpr std::int64_t kTierAlign = 64;  // bytes; every tier begins at a multiple of it within its batch

enum class Encoding : std::uint32_t { fp64 = 0, tiers = 1 };

struct FileHeader {
    char magic[8];
    std::uint32_t version;
    std::uint32_t encoding;
    std::uint32_t tiers;     // 1 for fp64
    std::uint32_t reserved;  // 0
    std::int64_t unknowns;
    std::int64_t leaves;
    std::int64_t low_rank_leaves;
    std::int64_t batches;
    std::int64_t leaf_table_offset;   // LeafRecord[leaves]
    std::int64_t batch_table_offset;  // BatchRecord[batches]
    std::int64_t order_offset;        // int64[unknowns]: position in the matrix -> the user's unknown
    std::int64_t about_offset;        // JSON text that describes the problem
    std::int64_t about_bytes;
    std::int64_t file_bytes;
    std::int64_t fp64_bytes;  // size of U, V and the dense blocks as doubles, at accuracy `eps`
    std::int64_t rank_sum;    // sum of the ranks of all low-rank leaves, at accuracy `eps`
    double eps;               // accuracy that the user asked for
    double eta;
    std::int64_t leaf_size;
    double accuracies[kMaxTiers];  // accuracies[i]: relative Frobenius error of a leaf read from tiers 0 to i
    double sampled_error;  // ||(H - A) x|| / ||A x|| on sampled rows, measured at assembly; negative: not measured
    std::uint32_t tables_checksum;  // CRC-32 from leaf_table_offset to the end of the file
    std::uint32_t header_checksum;  // CRC-32 of all bytes of the header before this field
};

struct LeafRecord {
    std::int64_t row;
    std::int64_t column;
    std::int64_t rows;
    std::int64_t columns;
    std::uint32_t low_rank;
    std::uint32_t reserved;
    std::uint16_t counts[kMaxTiers][kDigits];  // see LeafShape; with fp64, counts[0][0] is the rank
};

struct BatchRecord {
    std::int64_t offset;  // of the first byte, from the beginning of the file
    std::int64_t bytes;   // without the zeros up to the next page
    std::int64_t first_leaf;
    std::int64_t leaves;
    std::int64_t tier_begin[kMaxTiers];  // from `offset`; an unused tier is empty and begins at `bytes`
    std::int64_t tier_bytes[kMaxTiers];
    std::uint32_t checksums[kMaxTiers];  // CRC-32 of each tier's bytes
    std::uint32_t reserved[2];
};

static_assert(sizeof(FileHeader) == 208 && sizeof(LeafRecord) == 88 && sizeof(BatchRecord) == 160);
static_assert(std::is_trivially_copyable_v<FileHeader> && std::is_trivially_copyable_v<LeafRecord>);

}  // namespace penstock::hmatrix
