// Your own kernel on an array in a file, in C++: threads of the GPU read and write the elements of a file as if it were
// in memory. Without a GPU the host does the same through the same header. Link the CMake target penstock::cpp, then
//
//     ./gpu_kernel squares.bin
#include <penstock/device_cache.hpp>
#include <penstock/ondevice/stored_array.hpp>

#include <cstdio>
#include <fstream>
#include <vector>

using penstock::ondevice::Status;
using penstock::ondevice::StoredArray;
using penstock::ondevice::StoredRef;
using u64 = penstock::ondevice::u64;

// Every element becomes its square. A thread's failure is kept for DeviceCache::check.
__host__ __device__ void square_some(const StoredRef* ref, u64 first, u64 step) {
    const StoredArray<float> x(*ref);
    for (u64 i = first; i < x.size(); i += step) {
        const float value = x[i];
        x[i] = value * value;
    }
}

// A miss would take every register there is, and few warps would be at work: eight blocks at once are asked for.
__global__ void __launch_bounds__(128, 8) square(const StoredRef* ref) {
    square_some(ref, blockIdx.x * blockDim.x + threadIdx.x, u64{gridDim.x} * blockDim.x);
}

static bool squares_are_in(const char* name, std::size_t count) {
    std::vector<float> values(count);
    std::ifstream(name, std::ios::binary)
        .read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(4 * count));
    for (std::size_t i = 0; i < count; ++i) {
        const float root = static_cast<float>(i % 1000);
        if (values[i] != root * root) return false;
    }
    return true;
}

int main(int count, char** arguments) {
    if (count < 2) return std::fprintf(stderr, "usage: %s FILE (it is made)\n", arguments[0]), 2;
    constexpr std::size_t kItems = 1 << 20;
    std::vector<float> values(kItems);
    for (std::size_t i = 0; i < kItems; ++i) values[i] = static_cast<float>(i % 1000);
    std::ofstream(arguments[1], std::ios::binary)
        .write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(4 * kItems));
    try {
        const penstock::Context context;
        const penstock::File file = context.open(arguments[1], {.mode = penstock::OpenMode::read_write});
        const penstock::DeviceCache cache(context, {&file, 1}, {.cache_bytes = penstock::kMiB});  // a quarter of it
        if (context.device().info().emulated) {
            square_some(cache.ref(0), 0, 1);
        } else {
            square<<<128, 128>>>(cache.ref(0));
            if (cudaDeviceSynchronize() != cudaSuccess) return std::fprintf(stderr, "the kernel failed\n"), 1;
        }
        cache.check();
        const auto total = cache.statistics().total;
        cache.close();  // what was stored is in the file now
        std::printf("on %s: %llu hits, %llu misses, %llu pages written back\n", context.device().name().c_str(),
                    static_cast<unsigned long long>(total.hits), static_cast<unsigned long long>(total.misses),
                    static_cast<unsigned long long>(total.write_backs));
        if (!squares_are_in(arguments[1], kItems)) return std::fprintf(stderr, "squares differ\n"), 1;
    } catch (const penstock::Error& error) {
        return std::fprintf(stderr, "%s\n", error.what()), 1;
    }
    return 0;
}
