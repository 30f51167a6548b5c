// The tiles of a matrix of doubles: the tables of tile.hpp, made from an open matrix.
#pragma once

#include "hmatrix/gpu/tiles/lists.hpp"
#include "hmatrix/gpu/tiles/tile.hpp"

namespace penstock::hmatrix::gpu {

using TilePlan = TilePlanOf<Tile, TileLeaf>;

struct TileOptions {
    int numbers = kTileNumbers;  // of shared memory, at most kTileNumbers; smaller for tests
};

// Throws Error{unsupported} for a matrix beyond what the tables hold: leaves of 2^31 rows, batches of 32 GiB.
TilePlan tile_plan(const MatrixFile& file, const TileOptions& options = {});

}  // namespace penstock::hmatrix::gpu
