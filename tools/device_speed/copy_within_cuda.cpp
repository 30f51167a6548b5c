// See boxes.hpp: copies by the CUDA runtime, the measure that boxes are held against.
#include <cuda_runtime_api.h>

#include <cstring>

#include "boxes.hpp"

namespace penstock {

void copy_within(Stream& stream, void* to, const void* from, std::uint64_t bytes) {
    cudaPointerAttributes found{};
    if (cudaPointerGetAttributes(&found, to) != cudaSuccess || found.type == cudaMemoryTypeUnregistered) {
        static_cast<void>(cudaGetLastError());
        std::memcpy(to, from, bytes);  // the emulated device
        return;
    }
    const cudaError_t code = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice,
                                             static_cast<cudaStream_t>(stream.native_handle()));
    if (code != cudaSuccess) throw Error(ErrorCode::device_error, "cudaMemcpyAsync", cudaGetErrorString(code));
    stream.synchronize();
}

}  // namespace penstock
