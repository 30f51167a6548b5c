// The tiles of a matrix of doubles: builds the tables of tile.hpp from an open matrix.
#pragma once

#include "hmatrix/gpu/tiles/lists.hpp"
#include "hmatrix/gpu/tiles/tile.hpp"

namespace penstock::hmatrix::gpu {

using TilePlan = TilePlanOf<Tile, TileLeaf>;

struct TileOptions {
    int numbers = kTileNumbers;  // doubles of shared memory for a tile, at most kTileNumbers; tests use less
};

// Throws Error{unsupported} for a matrix beyond the limits of the tables: leaves of 2^31 rows, batches of 32 GiB.
TilePlan tile_plan(const MatrixFile& file, const TileOptions& options = {});

}  // namespace penstock::hmatrix::gpu
