// Vectors of a Krylov method in GPU memory: solvers written for VectorSpace run there unchanged.
#pragma once

#include <memory>

#include "hmatrix/solve/vectors.hpp"
#include "penstock/context.hpp"

namespace penstock::hmatrix {

// All work goes to `stream`, which outlives it, as the context does. Throws Error{unsupported} in a build without CUDA.
std::unique_ptr<VectorSpace> make_gpu_vectors(const Context& context, Stream& stream, std::int64_t size);

}  // namespace penstock::hmatrix
