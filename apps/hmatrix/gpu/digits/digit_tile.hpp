// What a GPU knows of a matrix in tiers: tiles as in tile.hpp, and a table that says where their digits are.
//
// Digits (codec/digits.hpp) are read as words of four rows of a column. A tile's bytes are runs in each tier; leaves
// that follow each other in the file share them. Rows of the table, of 8 bytes each, name columns by their places in
// shared memory, so nothing must be looked up in the leaf. Rows are in the order of tiers: a product with the first
// tiers uses the first of each kind. PODs for nvcc (C++17) and g++.
#pragma once

#include <cstdint>

#include "hmatrix/codec/digits.hpp"
#include "hmatrix/gpu/tiles/tile.hpp"

namespace penstock::hmatrix::gpu {

constexpr int kDigitRows = 4;                                                     // of a column, in a word
constexpr int kDigitWords = kTileBytes / static_cast<int>(sizeof(std::uint32_t));  // of shared memory a tile may need
constexpr int kPlaceBits = 12;
constexpr int kDigitLeaves = 256;  // of a tile at most
constexpr std::uint32_t kPlaces = (1u << kPlaceBits) - 1;
static_assert(kDigitWords <= kPlaces);

// Places are words of shared memory. The rows of a table, each kind behind the last:
struct DigitColumn {  // one digit of a vector of a low-rank leaf
    std::uint32_t v : kPlaceBits;  // leaves, left
    std::uint32_t u : kPlaceBits;  // leaves, right
    std::uint32_t leaf : 8;
    std::uint32_t t : kPlaceBits;
    std::uint32_t scale : kPlaceBits;  // leaves, left
    std::uint32_t digit : 8;
};
struct DigitBlock {  // one digit of columns of a dense leaf, without gaps between them
    std::uint32_t place : kPlaceBits;
    std::uint32_t columns : kPlaceBits;
    std::uint32_t digit : 8;
    std::uint32_t x : kPlaceBits;
    std::uint32_t scale : kPlaceBits;
    std::uint32_t unused : 8;
};
struct DigitLeaf {  // its x; right: its t
    std::uint32_t first;
    std::uint16_t count;
    std::uint16_t place;  // a multiple of 4, with zeros behind up to the next
};
struct DigitRun {
    std::uint32_t first;  // word of the tier
    std::uint32_t place : kPlaceBits;  // as far behind a multiple of 16 bytes as the run is
    std::uint32_t words : kPlaceBits;
    std::uint32_t tier : 8;
};
// What DigitColumn becomes when t is known.
struct WeighedColumn {
    std::uint32_t u;
    float factor;
};
constexpr int room_of_digits(int words) { return words + 6; }  // of a run, wherever it begins

struct alignas(16) DigitTile {
    std::int64_t row;     // of y; left: of t
    std::uint32_t table;  // its first row in the batch's table
    std::int32_t rows;    // of y; left: of t
    std::uint16_t columns[kMaxTiers];  // of this tier and those before
    std::uint16_t blocks[kMaxTiers];
    std::uint16_t runs[kMaxTiers];
    std::uint16_t leaves;
    std::uint16_t t;        // its place; leaves, left
    std::uint16_t t_count;  // of numbers
    std::uint16_t words;    // of the longest column of V
    TileKind kind;          // not dense: those are leaves
};

struct DigitBatch {
    using Real = float;
    const std::uint32_t* tiers[kMaxTiers];
    std::int32_t tiers_used;
    const std::uint64_t* table;
    const DigitTile* tiles;    // those that need no t first
    std::int32_t count;        // of them
    std::int32_t right_count;  // of those behind
};

}  // namespace penstock::hmatrix::gpu
