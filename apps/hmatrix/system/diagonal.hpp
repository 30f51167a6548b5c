// Blocks on the diagonal of a stored matrix, as numbers: what block-Jacobi is made of.
//
// Taken by one sweep of few tiers, for a preconditioner need not be exact: where those are in memory it costs no
// reading.
#pragma once

#include <cstdint>
#include <vector>

#include "hmatrix/file/reader.hpp"
#include "hmatrix/multiply/source/source.hpp"
#include "hmatrix/solve/block_jacobi.hpp"
#include "hmatrix/threads/workers.hpp"

namespace penstock::hmatrix {

struct DiagonalOptions {
    std::int64_t block_size = 256;  // at least 1
    int tiers = 1;                  // of each leaf
    Stream* from_device = nullptr;  // copies batches to the host, where the source's memory is a GPU's
};

// Neighbouring leaf clusters together, at most `block_size` unknowns a block; a larger cluster makes several.
std::vector<DiagonalBlock> diagonal_blocks(const MatrixFile& file, BatchSource& source, Workers& workers,
                                           const DiagonalOptions& options);

}  // namespace penstock::hmatrix
