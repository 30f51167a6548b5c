// Where the products and vectors of a stored matrix live: on the host or on a GPU.
//
// This class alone knows what differs: the product with a batch, the memory of batches, the vectors of a solve, and
// block-Jacobi.
#pragma once

#include <memory>

#include "hmatrix/file/reader.hpp"
#include "hmatrix/multiply/batch_product.hpp"
#include "hmatrix/solve/block_jacobi.hpp"
#include "hmatrix/solve/vectors.hpp"
#include "hmatrix/threads/workers.hpp"
#include "penstock/context.hpp"

namespace penstock::hmatrix {

class Compute {
  public:
    virtual ~Compute() = default;
    virtual MemoryKind memory() const noexcept = 0;  // memory that batches are read into
    virtual Stream* stream() noexcept = 0;           // the stream of all work; null on the host
    virtual BatchProduct& product() noexcept = 0;
    virtual VectorSpace& vectors() noexcept = 0;
    virtual std::unique_ptr<LinearOperator> block_jacobi(FactoredBlocks blocks) = 0;
};

// Requires: `file` and `workers` outlive the result.
std::unique_ptr<Compute> make_host_compute(const MatrixFile& file, Workers& workers);
// Computes on the context's GPU. Throws Error{unsupported} in a build without CUDA. Also throws it for a matrix beyond
// the limits of the kernels (digits/digit_plan.hpp, tiles/tile_plan.hpp), and for one finer than their single
// precision.
std::unique_ptr<Compute> make_gpu_compute(const Context& context, const MatrixFile& file);

}  // namespace penstock::hmatrix
