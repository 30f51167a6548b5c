// A stand-in for libcuda.so.1: the few driver calls of the cuFile probe and of known_memory, on host memory, for tests
// without a GPU.
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

// The one allocation that the driver knows, besides nothing.
struct Declared {
    std::uintptr_t base = 0;
    std::size_t bytes = 0;
    unsigned type = 0, managed = 0;
};
Declared declared;
bool started = false;

}  // namespace

extern "C" {

int cuInit(unsigned) {
    if (std::getenv("FAKE_CUDA_NO_DEVICE") != nullptr) return 100;
    started = true;
    return 0;
}

void fake_declare_memory(const void* base, std::size_t bytes, unsigned type, unsigned managed) {
    declared = {reinterpret_cast<std::uintptr_t>(base), bytes, type, managed};
}

// As the driver does: unknown pointers are no error, and leave zeros.
int cuPointerGetAttributes(unsigned count, const unsigned* attributes, void** values, std::uintptr_t pointer) {
    if (!started) return 3;
    const bool known = pointer >= declared.base && pointer - declared.base < declared.bytes;
    for (unsigned i = 0; i < count; ++i) {
        switch (attributes[i]) {
            case 2: *static_cast<unsigned*>(values[i]) = known ? declared.type : 0; break;
            case 8: *static_cast<unsigned*>(values[i]) = known ? declared.managed : 0; break;
            case 9: *static_cast<int*>(values[i]) = known ? 3 : -2; break;
            case 11: *static_cast<std::uintptr_t*>(values[i]) = known ? declared.base : 0; break;
            case 12: *static_cast<std::size_t*>(values[i]) = known ? declared.bytes : 0; break;
            default: return 1;
        }
    }
    return 0;
}

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
