// What a GPU knows of a matrix of doubles: tiles of its leaves, each a warp's work, and where one batch lies now.
//
// A tile is as much as a warp holds in shared memory: it asks for all of it at once, waits once, and computes from
// there, so memory always has enough to do. Small leaves of the same rows are one tile. Of a larger low-rank leaf U V^T
// V is cut into tiles and U into others: those of V add to t = V^T x in memory, those of U, a launch later, make U t of
// it. PODs for nvcc (C++17) and g++, in tables made once when a matrix is opened.
#pragma once

#include <cstdint>

namespace penstock::hmatrix::gpu {

constexpr int kTileNumbers = 1152;  // doubles of shared memory a tile may need: 24 warps fill a multiprocessor's
constexpr int kTileColumns = 128;   // of a part of a leaf
constexpr int kJoinedRows = 32;     // leaves with more are not joined: a lane has one row of all of them

enum class TileKind : std::int32_t {
    leaves,  // whole ones, of the same rows
    left,    // of V: t += tile^T x
    right,   // of U: y += tile t
    dense,   // y += tile x
};

struct alignas(16) Tile {
    std::int64_t row;      // of y; left: of x
    std::int64_t column;   // dense: of x; left, right: of t
    std::uint32_t first;   // number in the batch; leaves: of TileBatch::leaves
    std::int32_t stride;   // numbers from column to column
    std::int32_t rows;
    std::int32_t columns;  // leaves: how many of them
    TileKind kind;
    std::int32_t unused;
};

struct TileLeaf {
    std::int64_t column;   // of x
    std::uint32_t first;   // number in the batch: of V, then U follows; or of the block
    std::int32_t columns;
    std::int32_t rank;     // kFull: dense
    std::int32_t size;     // numbers
    std::int32_t place;    // even; in shared memory, behind the TileLeafs of its tile: room for its numbers, x, t
    std::int32_t unused;
};
constexpr std::int32_t kFull = -1;
// Runs of numbers keep their place within 16 bytes when they are copied, and may be copied with one more at each end.
constexpr int room_of_run(int numbers) { return (numbers + 2) & ~1; }
constexpr int kTileLeafNumbers = sizeof(TileLeaf) / sizeof(double);
static_assert(sizeof(TileLeaf) % (2 * sizeof(double)) == 0, "they lie before runs");

struct TileBatch {
    using Real = double;
    const double* numbers;
    const TileLeaf* leaves;
    const Tile* tiles;        // those that need no t first
    std::int32_t count;       // of them
    std::int32_t right_count;  // of those behind
};

template <class Real>
struct TileVectors {
    const Real* x;
    Real* t;  // of all leaves that are cut
    double* y;
};

// Batches that one pair of launches multiplies with: TileBatches, or those of digit_tile.hpp.
constexpr int kTileBatches = 32;
constexpr int kTileThreads = 64;
constexpr int kTileWarps = kTileThreads / 32;
constexpr int kTileBytes = kTileNumbers * static_cast<int>(sizeof(double));  // of shared memory, of a warp
template <class Batch>
struct TileGroup {
    Batch batches[kTileBatches];
    std::int32_t count;
    std::int32_t blocks_end[2][kTileBatches];  // of this batch and those before: in the first launch and in the second
};

}  // namespace penstock::hmatrix::gpu
