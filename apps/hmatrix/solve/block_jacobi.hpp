// The factored diagonal blocks of a matrix: the cheapest preconditioner that helps a boundary-element matrix.
//
// Factoring is separate from applying, with plain arrays (FactoredBlocks) between them. An implementation for other
// memory copies these arrays there. Requires: blocks tile the diagonal in rising order, without gaps or overlap, and
// each has at most kLargestBlock rows.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hmatrix/solve/vectors.hpp"

namespace penstock::hmatrix {

constexpr std::int64_t kLargestBlock = 1024;

struct DiagonalBlock {
    std::int64_t offset = 0;  // first row and column of the block
    std::int64_t size = 0;
    std::vector<double> values;  // column-major
};

// P A = L U for each block. L has a unit diagonal; L and U overwrite A.
struct FactoredBlocks {
    std::int64_t unknowns = 0;
    std::vector<std::int64_t> offsets;  // first row of each block, and `unknowns` at the end
    std::vector<std::int64_t> places;   // index into `factors` of each block's first number, and their count at the end
    std::vector<double> factors;        // column-major
    // Row k of a block was swapped with its row pivots[offset + k], which is at least k.
    std::vector<std::int32_t> pivots;

    std::int64_t count() const noexcept { return static_cast<std::int64_t>(offsets.size()) - 1; }
};

// Throws Error{invalid_argument} that names the block, for blocks that do not tile [0, unknowns), are singular, or hold
// a number that is not finite. `workers`: as for make_host_vectors.
FactoredBlocks factor_blocks(std::int64_t unknowns, const std::vector<DiagonalBlock>& blocks,
                             Workers* workers = nullptr);

// y = M x in host memory, where M is the inverse of the blocks. apply() ignores its accuracy. Every run gives the same
// bits.
std::unique_ptr<LinearOperator> make_host_block_jacobi(FactoredBlocks blocks, Workers* workers = nullptr);

}  // namespace penstock::hmatrix
