// Events and memory owners of a GPU. Events record no timing and let the waiting thread sleep.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "device/cuda/error.hpp"
#include "penstock/device.hpp"

namespace penstock::device {

struct CudaFree {
    void operator()(void* memory) const noexcept { cuda_worked(cudaFree(memory)); }
};
struct CudaFreeHost {
    void operator()(void* memory) const noexcept { cuda_worked(cudaFreeHost(memory)); }
};

class CudaEvent final : public Event {
  public:
    explicit CudaEvent(int device_index, unsigned flags = cudaEventDisableTiming | cudaEventBlockingSync);
    ~CudaEvent() override {
        const ScopedCudaDevice scope(index_, std::nothrow);
        cuda_worked(cudaEventDestroy(event_));
    }
    bool done() override;
    bool wait(Deadline deadline) override;
    cudaEvent_t native() const noexcept { return event_; }

  private:
    int index_;
    cudaEvent_t event_ = nullptr;
};

// Requires: the caller puts the result into a unique_ptr with CudaFreeHost.
template <typename T>
T* allocate_pinned(std::size_t count) {
    void* memory = nullptr;
    cuda_check(cudaHostAlloc(&memory, count * sizeof(T), cudaHostAllocPortable), "cudaHostAlloc");
    return static_cast<T*>(memory);
}

}  // namespace penstock::device
