// Extracts the diagonal blocks of a stored matrix as numbers, for block-Jacobi.
//
// One sweep with few tiers reads them, because a preconditioner need not be exact. If these tiers are in memory, the
// sweep reads nothing from storage.
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
    int tiers = 1;                  // number of first tiers to use of each leaf
    Stream* from_device = nullptr;  // copies batches to the host if the source's memory is on a GPU; otherwise null
};

// Groups neighbouring leaf clusters into blocks of at most `block_size` unknowns. A larger cluster is divided into
// several blocks.
std::vector<DiagonalBlock> diagonal_blocks(const MatrixFile& file, BatchSource& source, Workers& workers,
                                           const DiagonalOptions& options);

}  // namespace penstock::hmatrix
