// A stand-in for libcuda.so.1: the few driver calls of the cuFile probe, on host memory, for tests without a GPU.
#include <cstdint>
#include <cstdlib>
#include <cstring>

extern "C" {

int cuInit(unsigned) { return std::getenv("FAKE_CUDA_NO_DEVICE") != nullptr ? 100 : 0; }

int cuDeviceGet(int* device, int index) {
    *device = index;
    return index == 0 ? 0 : 101;
}

int cuDevicePrimaryCtxRetain(void** context, int) {
    static int any = 0;
    *context = &any;
    return 0;
}

int cuCtxGetCurrent(void** context) {
    *context = nullptr;
    return 0;
}

int cuCtxSetCurrent(void*) { return 0; }

int cuMemAlloc_v2(std::uint64_t* memory, std::size_t bytes) {
    *memory = reinterpret_cast<std::uint64_t>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096));
    return *memory == 0 ? 2 : 0;
}

int cuMemcpyDtoH_v2(void* host, std::uint64_t device, std::size_t bytes) {
    std::memcpy(host, reinterpret_cast<const void*>(device), bytes);
    return 0;
}

}  // extern "C"
