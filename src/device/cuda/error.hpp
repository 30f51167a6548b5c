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

// Makes a device current for the thread; `before` gets the one that was.
cudaError_t make_current(int index, int& before) noexcept;
// Makes `before` current again, where the process uses it: cudaSetDevice makes a context, which takes memory there.
void make_current_again(int before, int index) noexcept;

// Makes a device current for a scope, and then restores the device of the caller's thread.
class ScopedCudaDevice {
  public:
    explicit ScopedCudaDevice(int index) : index_(index) { cuda_check(make_current(index, before_), "cudaSetDevice"); }
    // For destructors, which go on where it fails.
    ScopedCudaDevice(int index, std::nothrow_t) noexcept : index_(index) {
        if (!cuda_worked(make_current(index, before_))) before_ = index;
    }
    ~ScopedCudaDevice() { make_current_again(before_, index_); }
    ScopedCudaDevice(const ScopedCudaDevice&) = delete;
    ScopedCudaDevice& operator=(const ScopedCudaDevice&) = delete;

  private:
    int index_;
    int before_ = 0;
};

}  // namespace penstock::device
