// What the GPU driver of the process knows of a pointer, asked of the driver itself: the CUDA runtime would make a
// context on a GPU first, which takes a second and some hundred MB that a program for the CPU never asked for.
//
// The driver is used if the process has loaded it, and not loaded: a program without CUDA has no memory that it knows.
// So this is part of every build, and declares the one function that it calls itself.
#include <dlfcn.h>
#include <link.h>

#include <array>
#include <atomic>
#include <cstddef>

#include "penstock/device.hpp"

namespace penstock {
namespace {

// Of cuda.h, where these values are part of the driver's stable interface.
constexpr unsigned kMemoryType = 2, kIsManaged = 8, kDeviceOrdinal = 9, kRangeStart = 11, kRangeSize = 12;
constexpr unsigned kOnHost = 1, kOnDevice = 2;
using GetAttributes = int (*)(unsigned count, const unsigned* attributes, void** values, std::uintptr_t pointer);

// Which driver a process has loaded belongs to the process. It is never unloaded once it was found.
struct LoadedDriver {
    std::atomic<GetAttributes> attributes{nullptr};
    std::atomic<unsigned long long> loads_seen{0};
};
LoadedDriver& loaded_driver() noexcept {
    static LoadedDriver driver;
    return driver;
}

// How many libraries the process has loaded so far. It takes 0.1 us, asking for one by name takes some.
unsigned long long count_loads() noexcept {
    unsigned long long loads = 0;
    const auto take = [](dl_phdr_info* info, std::size_t, void* to) {
        *static_cast<unsigned long long*>(to) = info->dlpi_adds;
        return 1;  // the first entry is enough
    };
    ::dl_iterate_phdr(take, &loads);
    return loads;
}

// Null where the process has not loaded a driver.
GetAttributes attributes_of_driver() noexcept {
    LoadedDriver& driver = loaded_driver();
    if (const GetAttributes known = driver.attributes.load(std::memory_order_acquire)) return known;
    const unsigned long long loads = count_loads();
    if (loads == driver.loads_seen.load(std::memory_order_relaxed)) return nullptr;
    void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    auto* function = library == nullptr ? nullptr : ::dlsym(library, "cuPointerGetAttributes");
    driver.attributes.store(reinterpret_cast<GetAttributes>(function), std::memory_order_release);
    driver.loads_seen.store(loads, std::memory_order_relaxed);
    return reinterpret_cast<GetAttributes>(function);
}

}  // namespace

PointerInfo known_memory(const void* memory) noexcept {
    const GetAttributes ask = attributes_of_driver();
    if (ask == nullptr || memory == nullptr) return {};
    constexpr std::array kAsked{kMemoryType, kIsManaged, kDeviceOrdinal, kRangeStart, kRangeSize};
    unsigned type = 0, managed = 0;
    int ordinal = -1;
    std::uintptr_t start = 0;
    std::size_t bytes = 0;
    std::array<void*, kAsked.size()> values{&type, &managed, &ordinal, &start, &bytes};
    // Fails before the process has called cuInit: then it has no memory of a GPU.
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    if (ask(kAsked.size(), kAsked.data(), values.data(), address) != 0) return {};
    if (managed == 0 && type != kOnHost && type != kOnDevice) return {};
    PointerInfo info;
    info.known = true;
    info.kind = managed != 0 ? MemoryKind::managed : type == kOnHost ? MemoryKind::pinned : MemoryKind::device;
    info.device_index = ordinal;
    info.base = bytes == 0 ? nullptr : reinterpret_cast<const void*>(start);
    info.bytes = start == 0 ? 0 : bytes;
    return info;
}

}  // namespace penstock
