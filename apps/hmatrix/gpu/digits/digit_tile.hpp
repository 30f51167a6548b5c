// The tables that a GPU uses for a matrix in tiers: tiles as in tile.hpp, and a table that gives the places of their
// digits.
//
// Digits (codec/digits.hpp) are read as words: one word holds one digit of four rows of a column. The bytes of a tile
// are runs in each tier; leaves that follow each other in the file share runs. The table has rows of 8 bytes. They name
// columns by their places in shared memory, so a kernel need not look anything up in the leaf. Rows are sorted by tier:
// a product with the first tiers uses the first rows of each kind. These are PODs for nvcc (C++17) and g++.
#pragma once

#include <cstdint>

#include "hmatrix/codec/digits.hpp"
#include "hmatrix/gpu/tiles/tile.hpp"

namespace penstock::hmatrix::gpu {

constexpr int kDigitRows = 4;  // rows of a column in one word
// Words of shared memory that a tile may need.
constexpr int kDigitWords = kTileBytes / static_cast<int>(sizeof(std::uint32_t));
constexpr int kPlaceBits = 12;
constexpr int kDigitLeaves = 256;  // leaves of a tile at most
constexpr std::uint32_t kPlaces = (1u << kPlaceBits) - 1;
static_assert(kDigitWords <= kPlaces);

// A place is an index of a 32-bit word in shared memory. The rows of a table, one kind after the other:
struct DigitColumn {               // one digit of a vector of a low-rank leaf
    std::uint32_t v : kPlaceBits;  // used by tiles of kind leaves and left
    std::uint32_t u : kPlaceBits;  // used by tiles of kind leaves and right
    std::uint32_t leaf : 8;
    std::uint32_t t : kPlaceBits;
    std::uint32_t scale : kPlaceBits;  // used by tiles of kind leaves and left
    std::uint32_t digit : 8;
};
struct DigitBlock {  // one digit of some columns of a dense leaf, which follow each other without gaps
    std::uint32_t place : kPlaceBits;
    std::uint32_t columns : kPlaceBits;
    std::uint32_t digit : 8;
    std::uint32_t x : kPlaceBits;
    std::uint32_t scale : kPlaceBits;
    std::uint32_t unused : 8;
};
struct DigitLeaf {  // the x of a leaf; for right tiles its t
    std::uint32_t first;
    std::uint16_t count;
    std::uint16_t place;  // a multiple of 4; zeros follow up to the next multiple
};
struct DigitRun {
    std::uint32_t first;               // first word in the tier of the batch
    std::uint32_t place : kPlaceBits;  // congruent to `first` modulo 4 words, as the 16-byte copies require
    std::uint32_t words : kPlaceBits;
    std::uint32_t tier : 8;
};
// Replaces a DigitColumn when its t is known.
struct WeighedColumn {
    std::uint32_t u;
    float factor;
};
constexpr int room_of_digits(int words) { return words + 6; }  // words that a run may take, wherever it begins

struct alignas(16) DigitTile {
    std::int64_t row;                  // first row of y; for left tiles, first number of t
    std::uint32_t table;               // index of the tile's first row in the batch's table
    std::int32_t rows;                 // rows of y; for left tiles, numbers of t
    std::uint16_t columns[kMaxTiers];  // number of rows for this tier and those before
    std::uint16_t blocks[kMaxTiers];
    std::uint16_t runs[kMaxTiers];
    std::uint16_t leaves;
    std::uint16_t t;        // place of t in shared memory; tiles of kind leaves and left
    std::uint16_t t_count;  // numbers of t
    std::uint16_t words;    // words of the longest column of V
    TileKind kind;          // never `dense`: dense leaves have the kind `leaves`
};

struct DigitBatch {
    using Real = float;
    const std::uint32_t* tiers[kMaxTiers];
    std::int32_t tiers_used;
    const std::uint64_t* table;
    const DigitTile* tiles;    // first the tiles that need no finished t
    std::int32_t count;        // number of these tiles
    std::int32_t right_count;  // number of right tiles, which follow them
};

}  // namespace penstock::hmatrix::gpu
