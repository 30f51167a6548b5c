// Turns CUDA return codes into Errors. Every CUDA call goes through one of these functions. Each clears the pending
// error, so that other users of the runtime in the same thread do not get it.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "penstock/error.hpp"

namespace penstock::device {

inline std::string cuda_text(cudaError_t code) {
    return std::string(cudaGetErrorName(code)) + " (" + cudaGetErrorString(code) + ")";
}

inline Error cuda_error(cudaError_t code, const char* operation, std::string advice = {}) {
    ErrorInfo info;
    info.code = code == cudaErrorMemoryAllocation ? ErrorCode::out_of_memory : ErrorCode::device_error;
    info.system_code = static_cast<int>(code);
    info.operation = operation;
    info.cause = cuda_text(code);
    info.advice = std::move(advice);
    return Error(std::move(info));
}

inline void cuda_check(cudaError_t code, const char* operation) {
    if (code == cudaSuccess) return;
    static_cast<void>(cudaGetLastError());
    throw cuda_error(code, operation);
}

// For probes and destructors. Returns whether the call worked, and clears a pending error.
inline bool cuda_worked(cudaError_t code) noexcept {
    if (code == cudaSuccess) return true;
    static_cast<void>(cudaGetLastError());
    return false;
}

// Makes a device current for a scope, and then restores the device of the caller's thread.
class ScopedCudaDevice {
  public:
    explicit ScopedCudaDevice(int index) {
        cuda_check(cudaGetDevice(&before_), "cudaGetDevice");
        if (before_ == index) return;
        cuda_check(cudaSetDevice(index), "cudaSetDevice");
        changed_ = true;
    }
    ~ScopedCudaDevice() {
        if (changed_) cuda_worked(cudaSetDevice(before_));
    }
    ScopedCudaDevice(const ScopedCudaDevice&) = delete;
    ScopedCudaDevice& operator=(const ScopedCudaDevice&) = delete;

  private:
    int before_ = 0;
    bool changed_ = false;
};

}  // namespace penstock::device
