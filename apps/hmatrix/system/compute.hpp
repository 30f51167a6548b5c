// Where products and vectors of a stored matrix live: the host, or a GPU.
//
// The one seam that knows all that differs: the product with a batch, the memory batches are read into, the vectors of
// a solve, and block-Jacobi on them.
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
    virtual MemoryKind memory() const noexcept = 0;  // of batches
    virtual Stream* stream() noexcept = 0;           // of all work; null on the host
    virtual BatchProduct& product() noexcept = 0;
    virtual VectorSpace& vectors() noexcept = 0;
    virtual std::unique_ptr<LinearOperator> block_jacobi(FactoredBlocks blocks) = 0;
};

// File and workers must outlive it.
std::unique_ptr<Compute> make_host_compute(const MatrixFile& file, Workers& workers);
// On the context's GPU. Throws Error{unsupported} in a build without CUDA, and for a matrix beyond what kernels hold
// (digits/digit_plan.hpp, tiles/tile_plan.hpp) or finer than their single precision.
std::unique_ptr<Compute> make_gpu_compute(const Context& context, const MatrixFile& file);

}  // namespace penstock::hmatrix
