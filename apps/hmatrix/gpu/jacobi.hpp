// Block-Jacobi on a GPU, by multiplication with the inverses of the blocks.
//
// Substitution is sequential, which suits a GPU badly. A preconditioner need not be exact, so inverses in single
// precision suffice. A thread block multiplies with one of them at the speed of memory.
#pragma once

#include <memory>

#include "hmatrix/solve/block_jacobi.hpp"
#include "penstock/context.hpp"

namespace penstock::hmatrix {

// For vectors of make_gpu_vectors with the same stream. Requires: the stream outlives the result.
std::unique_ptr<LinearOperator> make_gpu_block_jacobi(const Context& context, Stream& stream, FactoredBlocks blocks);

}  // namespace penstock::hmatrix
