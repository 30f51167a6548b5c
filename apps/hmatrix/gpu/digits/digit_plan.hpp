// The tiles of a matrix in tiers: builds the tables of digit_tile.hpp from an open matrix.
#pragma once

#include "hmatrix/gpu/digits/digit_tile.hpp"
#include "hmatrix/gpu/tiles/lists.hpp"

namespace penstock::hmatrix::gpu {

using DigitPlan = TilePlanOf<DigitTile, std::uint64_t>;

struct DigitOptions {
    int words = kDigitWords;  // words of shared memory for a tile, 384 to kDigitWords; tests use less
};

// Throws Error{unsupported} for a matrix beyond the limits of the tables: 2^32 unknowns, leaves of 2^31 rows, or
// batches with tiers of 16 GiB.
DigitPlan digit_plan(const MatrixFile& file, const DigitOptions& options = {});

}  // namespace penstock::hmatrix::gpu
