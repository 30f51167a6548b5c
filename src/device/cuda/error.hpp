// Turns CUDA return codes into Errors. Every CUDA call goes through one of these functions. Each clears the pending
// error, so that other users of the runtime in the same thread do not get it.
#pragma once

#include <cuda_runtime_api.h>

#include <new>
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

// Puts the primary context of a device, which the runtime uses, over what is current for the thread. The device that
// the thread chose by cudaSetDevice stays chosen, and a GPU that the process does not use gets no context.
cudaError_t push_device(int index) noexcept;
void pop_device() noexcept;

// Makes a device current for a scope.
class ScopedCudaDevice {
  public:
    explicit ScopedCudaDevice(int index) { cuda_check(push_device(index), "cuCtxPushCurrent"); }
    // For destructors, which go on where it fails.
    ScopedCudaDevice(int index, std::nothrow_t) noexcept : pushed_(cuda_worked(push_device(index))) {}
    ~ScopedCudaDevice() {
        if (pushed_) pop_device();
    }
    ScopedCudaDevice(const ScopedCudaDevice&) = delete;
    ScopedCudaDevice& operator=(const ScopedCudaDevice&) = delete;

  private:
    bool pushed_ = true;
};

}  // namespace penstock::device
