// Launches passes over bodies on a GPU. nvcc compiles the code behind these functions. They return CUDA's error codes.
#pragma once

#include <cuda_runtime_api.h>

#include "nbody/bodies.hpp"

namespace penstock::nbody {

cudaError_t launch(const Evaluate& pass, cudaStream_t stream);
cudaError_t launch(const Correct& pass, cudaStream_t stream);

}  // namespace penstock::nbody
