// The tables that a GPU uses for a matrix of doubles: tiles of its leaves, each the work of one warp, and the addresses
// of a batch.
//
// A tile is as much as a warp can hold in shared memory. The warp requests all of it at once, waits once, and computes
// from shared memory, so that memory always has requests. Small leaves with the same rows share a tile. A larger
// low-rank leaf U V^T is cut into tiles of V and tiles of U. Tiles of V add to t = V^T x in global memory. Tiles of U
// add U t to y in the next launch. These are PODs for nvcc (C++17) and g++, in tables that are made once when a matrix
// is opened.
#pragma once

#include <cstdint>

namespace penstock::hmatrix::gpu {

// Doubles of shared memory that a tile may need: 24 warps then fill a multiprocessor.
constexpr int kTileNumbers = 1152;
constexpr int kTileColumns = 128;  // largest number of columns in a part of a leaf
constexpr int kJoinedRows = 32;    // leaves with more rows are not joined, so that a lane has one row of each leaf

enum class TileKind : std::int32_t {
    leaves,  // whole leaves with the same rows
    left,    // part of V: t += tile^T x
    right,   // part of U: y += tile t
    dense,   // y += tile x
};

struct alignas(16) Tile {
    std::int64_t row;     // first row of y; left: of x
    std::int64_t column;  // dense: first column, of x; left and right: of t
    std::uint32_t first;  // index of the first number in the batch; leaves: index into TileBatch::leaves
    std::int32_t stride;  // distance between columns, in numbers
    std::int32_t rows;
    std::int32_t columns;  // leaves: the number of leaves
    TileKind kind;
    std::int32_t unused;
};

struct TileLeaf {
    std::int64_t column;  // first column, of x
    std::uint32_t first;  // index in the batch of V's first number (U follows), or of the dense block's
    std::int32_t columns;
    std::int32_t rank;  // kFull: a dense leaf
    std::int32_t size;  // how many numbers
    // Even index in shared memory, after the tile's TileLeafs, of the room for its numbers, x and t.
    std::int32_t place;
    std::int32_t unused;
};
constexpr std::int32_t kFull = -1;
// Copies of runs keep their offset modulo 16 bytes, and may include one more number at each end.
constexpr int room_of_run(int numbers) { return (numbers + 2) & ~1; }
constexpr int kTileLeafNumbers = sizeof(TileLeaf) / sizeof(double);
static_assert(sizeof(TileLeaf) % (2 * sizeof(double)) == 0, "they lie before runs");

struct TileBatch {
    using Real = double;
    const double* numbers;
    const TileLeaf* leaves;
    const Tile* tiles;         // first the tiles that need no finished t
    std::int32_t count;        // number of these tiles
    std::int32_t right_count;  // number of right tiles, which follow them
};

template <class Real>
struct TileVectors {
    const Real* x;
    Real* t;  // t of all leaves that are cut
    double* y;
};

// A group of batches that one pair of launches multiplies. Batch is TileBatch, or DigitBatch of digit_tile.hpp.
constexpr int kTileBatches = 32;
constexpr int kTileThreads = 64;
constexpr int kTileWarps = kTileThreads / 32;
constexpr int kTileBytes = kTileNumbers * static_cast<int>(sizeof(double));  // shared memory of a warp, in bytes
template <class Batch>
struct TileGroup {
    Batch batches[kTileBatches];
    std::int32_t count;
    // For the first and the second launch: number of blocks for this batch and those before.
    std::int32_t blocks_end[2][kTileBatches];
};

}  // namespace penstock::hmatrix::gpu
