// Blocks on the diagonal of a stored matrix, as numbers: what block-Jacobi is made of.
//
// Taken from the tiers that are in memory anyway, so they cost no reading; a preconditioner need not be exact.
#pragma once

#include <cstdint>
#include <vector>

#include "hmatrix/file/reader.hpp"
#include "hmatrix/multiply/cached_source.hpp"
#include "hmatrix/solve/block_jacobi.hpp"
#include "hmatrix/threads/workers.hpp"

namespace penstock::hmatrix {

// Neighbouring leaf clusters together, at most `block_size` unknowns a block (or one cluster, where that is larger).
// The first `tiers` tiers of all batches must be pinned.
std::vector<DiagonalBlock> diagonal_blocks(const MatrixFile& file, const CachedSource& source, Workers& workers,
                                           std::int64_t block_size);

}  // namespace penstock::hmatrix
