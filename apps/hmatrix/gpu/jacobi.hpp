// Block-Jacobi on a GPU: the inverses of the blocks, multiplied with.
//
// Substitution goes row after row, which a GPU is bad at; a preconditioner need not be exact, so inverses in single
// precision do, and a block of threads multiplies with one at the speed of memory.
#pragma once

#include <memory>

#include "hmatrix/solve/block_jacobi.hpp"
#include "penstock/context.hpp"

namespace penstock::hmatrix {

// On vectors of make_gpu_vectors with the same stream, which outlives it.
std::unique_ptr<LinearOperator> make_gpu_block_jacobi(const Context& context, Stream& stream, FactoredBlocks blocks);

}  // namespace penstock::hmatrix
