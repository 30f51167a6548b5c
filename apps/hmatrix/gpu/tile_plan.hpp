// The tiles of a matrix of doubles: the tables of tile.hpp, made from an open matrix.
#pragma once

#include <cstdint>
#include <vector>

#include "hmatrix/file/reader.hpp"
#include "hmatrix/gpu/tile.hpp"

namespace penstock::hmatrix::gpu {

struct TilePlan {
    struct Batch {
        std::int64_t first_leaf = 0;  // of TilePlan::leaves: places that tiles name are from here on
        std::int64_t first_tile = 0;
        std::int64_t tiles = 0;        // that need no t first
        std::int64_t right_tiles = 0;  // behind them
    };
    std::vector<TileLeaf> leaves;  // small ones
    std::vector<Tile> tiles;
    std::vector<Batch> batches;
    std::int64_t t_numbers = 0;  // of t of all leaves that are cut
};

struct TileOptions {
    int numbers = kTileNumbers;  // of shared memory, at most kTileNumbers; smaller for tests
};

// Throws Error{unsupported} for a matrix beyond what the tables hold: leaves of 2^31 rows, batches of 32 GiB.
TilePlan tile_plan(const MatrixFile& file, const TileOptions& options = {});

}  // namespace penstock::hmatrix::gpu
