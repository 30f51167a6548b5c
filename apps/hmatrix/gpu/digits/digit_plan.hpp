// The tiles of a matrix in tiers: the tables of digit_tile.hpp, made from an open matrix.
#pragma once

#include "hmatrix/gpu/digits/digit_tile.hpp"
#include "hmatrix/gpu/tiles/lists.hpp"

namespace penstock::hmatrix::gpu {

using DigitPlan = TilePlanOf<DigitTile, std::uint64_t>;

struct DigitOptions {
    int words = kDigitWords;  // of shared memory, 384 to kDigitWords; smaller for tests
};

// Throws Error{unsupported} for a matrix beyond what the tables hold: 2^32 unknowns, leaves of 2^31 rows, tiers of
// batches of 16 GiB.
DigitPlan digit_plan(const MatrixFile& file, const DigitOptions& options = {});

}  // namespace penstock::hmatrix::gpu
