// Converts CUDA's return codes to Errors, for applications. It clears the pending code, so that other users of the
// runtime in this thread do not see it.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "penstock/error.hpp"

namespace penstock::apps {

inline void check_cuda(cudaError_t code, const char* operation) {
    if (code == cudaSuccess) return;
    static_cast<void>(cudaGetLastError());
    ErrorInfo info;
    info.code = code == cudaErrorMemoryAllocation ? ErrorCode::out_of_memory : ErrorCode::device_error;
    info.system_code = static_cast<int>(code);
    info.operation = operation;
    info.cause = std::string(cudaGetErrorName(code)) + " (" + cudaGetErrorString(code) + ")";
    throw Error(std::move(info));
}

}  // namespace penstock::apps
