// The blocks on a matrix's diagonal, factored: the cheapest preconditioner that helps a boundary-element matrix.
//
// Factoring and applying are apart, with plain arrays between them: FactoredBlocks is what an implementation for
// another memory copies there. Blocks tile the diagonal without gaps or overlap, in rising order, each at most
// kLargestBlock.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hmatrix/solve/vectors.hpp"

namespace penstock::hmatrix {

constexpr std::int64_t kLargestBlock = 1024;

struct DiagonalBlock {
    std::int64_t offset = 0;  // of its first row and column
    std::int64_t size = 0;
    std::vector<double> values;  // column-major
};

// P A = L U of each block, L with a unit diagonal, both in the place of A.
struct FactoredBlocks {
    std::int64_t unknowns = 0;
    std::vector<std::int64_t> offsets;   // of block i in the vector, and `unknowns` at the end
    std::vector<std::int64_t> places;    // of block i's numbers in `factors`, and their count at the end
    std::vector<double> factors;         // column-major
    std::vector<std::int32_t> pivots;    // row k of a block changed places with row pivots[offset + k], k <= that

    std::int64_t count() const noexcept { return static_cast<std::int64_t>(offsets.size()) - 1; }
};

// Throws Error{invalid_argument} for blocks that do not tile [0, unknowns), hold what is not a number, or are singular;
// names the block. `workers` here and below as make_host_vectors has them.
FactoredBlocks factor_blocks(std::int64_t unknowns, const std::vector<DiagonalBlock>& blocks,
                             Workers* workers = nullptr);

// y = M x in host memory, M the inverse of the blocks; accuracy is not asked about. Same bits on every run.
std::unique_ptr<LinearOperator> make_host_block_jacobi(FactoredBlocks blocks, Workers* workers = nullptr);

}  // namespace penstock::hmatrix
