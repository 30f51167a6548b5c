// Vectors of a Krylov method in GPU memory. Solvers written for VectorSpace use them unchanged.
#pragma once

#include <memory>

#include "hmatrix/solve/vectors.hpp"
#include "penstock/context.hpp"

namespace penstock::hmatrix {

// All work goes to `stream`. Requires: the context and `stream` outlive the result. Throws Error{unsupported} in a
// build without CUDA.
std::unique_ptr<VectorSpace> make_gpu_vectors(const Context& context, Stream& stream, std::int64_t size);

}  // namespace penstock::hmatrix
