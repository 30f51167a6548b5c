// Launches passes on a GPU. nvcc compiles the code behind these functions. They return CUDA's error codes.
#pragma once

#include <cuda_runtime_api.h>

#include "flow/passes.hpp"

namespace penstock::flow {

cudaError_t launch(const Close& pass, cudaStream_t stream);
cudaError_t launch(const Advance& pass, cudaStream_t stream);
cudaError_t launch(const Diagnose& pass, cudaStream_t stream);

}  // namespace penstock::flow
