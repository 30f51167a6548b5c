// A GPU behind the Device contract, through the static CUDA runtime. The runtime opens libcuda at first use, so builds
// for machines without a GPU include this file too. Making a device creates no CUDA context.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <fstream>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "device/cuda/error.hpp"
#include "device/cuda/stream.hpp"
#include "device/kept_memory.hpp"
#include "penstock/device.hpp"

namespace penstock {
namespace device {
namespace {

constexpr std::uint64_t kDeviceAlignment = 4096;

int attribute(cudaDeviceAttr name, int index) noexcept {
    int value = 0;
    return cuda_worked(cudaDeviceGetAttribute(&value, name, index)) ? value : 0;
}

std::string bus_of(int index) {
    char bus[32] = {};
    return cuda_worked(cudaDeviceGetPCIBusId(bus, sizeof bus, index)) ? bus : "";
}

// The file contains -1 if the kernel does not know, or if there is only one node.
int numa_node_of(std::string bus) {
    std::transform(bus.begin(), bus.end(), bus.begin(), [](unsigned char c) { return std::tolower(c); });
    std::ifstream file("/sys/bus/pci/devices/" + bus + "/numa_node");
    int node = -1;
    return file >> node ? node : -1;
}

// The allocation that contains a pointer, or zeros if the driver cannot tell.
struct AllocationRange {
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
};

using PointerAttribute = CUresult (*)(void*, CUpointer_attribute, CUdeviceptr);

// A function of the driver, of which no library is linked; `since` is the version of its interface that added it.
template <typename Function>
Function find_driver_function(const char* name, [[maybe_unused]] unsigned since) noexcept {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
    const cudaError_t code = cudaGetDriverEntryPointByVersion(name, &function, since, cudaEnableDefault, &found);
#else
    const cudaError_t code = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found);
#endif
    if (!cuda_worked(code) || found != cudaDriverEntryPointSuccess) return nullptr;
    return reinterpret_cast<Function>(function);
}

// The driver's part of the contexts that the runtime uses. Null where the driver is too old to be asked.
struct ContextCalls {
    CUresult (*retain)(CUcontext*, CUdevice) = find_driver_function<decltype(retain)>("cuDevicePrimaryCtxRetain", 7000);
    CUresult (*push)(CUcontext) = find_driver_function<decltype(push)>("cuCtxPushCurrent", 4000);
    CUresult (*pop)(CUcontext*) = find_driver_function<decltype(pop)>("cuCtxPopCurrent", 4000);
};
const ContextCalls& context_calls() {
    static const ContextCalls calls;
    return calls;
}

// The driver is asked for the name alone: all properties take milliseconds, of the first request of a program.
std::string model_of(int index) {
    const auto ask = find_driver_function<CUresult (*)(char*, int, CUdevice)>("cuDeviceGetName", 2000);
    char name[256] = {};
    if (ask != nullptr && ask(name, sizeof name, index) == CUDA_SUCCESS) return name;
    cudaDeviceProp properties{};
    cuda_check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
    return properties.name;
}

// Retained once for each GPU, for as long as the process lives. Null: there is none.
CUcontext primary_context(int index) noexcept {
    constexpr int kMostDevices = 64;
    static std::array<std::atomic<CUcontext>, kMostDevices> kept{};
    if (index < 0 || index >= kMostDevices || context_calls().retain == nullptr) return nullptr;
    std::atomic<CUcontext>& context = kept[static_cast<std::size_t>(index)];
    CUcontext found = context.load(std::memory_order_acquire);  // Pairs with: the store below
    if (found != nullptr || context_calls().retain(&found, index) != CUDA_SUCCESS) return found;
    context.store(found, std::memory_order_release);  // two threads at once retain it twice, which does no harm
    return found;
}

AllocationRange extent_of(PointerAttribute ask, const void* memory) noexcept {
    AllocationRange extent;
    if (ask == nullptr) return extent;
    const auto address = reinterpret_cast<CUdeviceptr>(memory);
    if (ask(&extent.base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address) != CUDA_SUCCESS ||
        ask(&extent.bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address) != CUDA_SUCCESS) {
        return {};
    }
    return extent;
}

constexpr std::uint64_t kMostKeptMemory = 128 * kMiB;  // 32 batches of 4 MiB, a thousandth of a large GPU
constexpr std::uint64_t kSpareMemory = 16 * kMiB;      // of one size: 4 batches, or 16 rows

class CudaDevice final : public Device {
  public:
    explicit CudaDevice(int index) : name_("cuda:" + std::to_string(index)) {
        facts_.index = index;
        facts_.processors = std::max(1, attribute(cudaDevAttrMultiProcessorCount, index));
        facts_.kernels_reach_pinned = attribute(cudaDevAttrCanUseHostPointerForRegisteredMem, index) != 0;
        registers_ = attribute(cudaDevAttrHostRegisterSupported, index) != 0;
        registers_read_only_ = attribute(cudaDevAttrHostRegisterReadOnlySupported, index) != 0;
        if (facts_.kernels_reach_pinned) {
            facts_.write_value = find_driver_function<WriteValue>("cuStreamWriteValue32", 12000);
        }
        pointer_attribute_ = find_driver_function<PointerAttribute>("cuPointerGetAttribute", 4000);
    }

    const std::string& name() const noexcept override { return name_; }
    DeviceInfo info() override;
    void* allocate(MemoryKind kind, std::uint64_t bytes) override;
    void release(MemoryKind kind, void* memory) noexcept override;
    bool register_host(void* memory, std::uint64_t bytes, bool read_only, std::string& why) override;
    void unregister_host(void* memory) noexcept override {
        const ScopedCudaDevice scope(facts_.index, std::nothrow);
        cuda_worked(cudaHostUnregister(memory));
    }
    PointerInfo pointer_info(const void* memory) override;
    std::unique_ptr<Stream> make_stream() override { return std::make_unique<CudaStream>(facts_); }
    std::unique_ptr<Event> make_event() override { return std::make_unique<CudaEvent>(facts_.index); }
    void enter_thread() override { cuda_check(cudaSetDevice(facts_.index), "cudaSetDevice"); }
    void enter_call() override { cuda_check(push_device(facts_.index), "cuCtxPushCurrent"); }
    void leave_call() noexcept override { pop_device(); }
    void synchronize_native(std::uintptr_t stream) override {
        const ScopedCudaDevice scope(facts_.index);
        cuda_check(cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(stream)), "cudaStreamSynchronize");
    }

  private:
    DeviceInfo fixed_info() const;
    void* allocate_unaligned(MemoryKind kind, std::uint64_t bytes) const;
    static void release_unaligned(MemoryKind kind, void* memory) noexcept;
    void* allocate_aligned(MemoryKind kind, std::uint64_t bytes);
    void release_aligned(MemoryKind kind, void* memory) noexcept;
    KeptMemory::MemorySource memory_source();

    std::string name_;
    CudaFacts facts_;
    bool registers_ = false;
    bool registers_read_only_ = false;
    PointerAttribute pointer_attribute_ = nullptr;
    std::once_flag asked_;
    DeviceInfo fixed_;              // all fields but the free memory
    std::mutex mutex_;              // guards moved_
    std::map<void*, void*> moved_;  // aligned pointer -> pointer from CUDA, for allocations that CUDA did not align
    KeptMemory kept_{memory_source(), kMostKeptMemory, kSpareMemory};  // goes first: it releases by the members above
};

DeviceInfo CudaDevice::info() {
    const ScopedCudaDevice scope(facts_.index);
    std::call_once(asked_, [this] { fixed_ = fixed_info(); });
    DeviceInfo info = fixed_;
    std::size_t free_bytes = 0, total_bytes = 0;
    cuda_check(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
    info.free_bytes = free_bytes;
    info.total_bytes = total_bytes;
    return info;
}

DeviceInfo CudaDevice::fixed_info() const {
    DeviceInfo info;
    info.name = name_;
    info.index = facts_.index;
    info.model = model_of(facts_.index);
    info.bus = bus_of(facts_.index);
    info.numa_node = numa_node_of(info.bus);
    info.coherent_with_host = attribute(cudaDevAttrPageableMemoryAccessUsesHostPageTables, facts_.index) != 0;
    info.registers_mappings = registers_;
    cuda_worked(cudaDriverGetVersion(&info.driver_version));
    cuda_worked(cudaRuntimeGetVersion(&info.runtime_version));
    return info;
}

void* CudaDevice::allocate_unaligned(MemoryKind kind, std::uint64_t bytes) const {
    void* memory = nullptr;
    cudaError_t code = cudaSuccess;
    switch (kind) {
        case MemoryKind::device:
            code = cudaMalloc(&memory, bytes);
            break;
        case MemoryKind::pinned:
            code = cudaHostAlloc(&memory, bytes, cudaHostAllocPortable);
            break;
        case MemoryKind::managed:
            code = cudaMallocManaged(&memory, bytes, cudaMemAttachGlobal);
            break;
        case MemoryKind::system:
            memory = ::operator new(bytes, std::align_val_t(kDeviceAlignment), std::nothrow);
            if (memory == nullptr) code = cudaErrorMemoryAllocation;
            break;
    }
    if (code == cudaSuccess) return memory;
    cuda_worked(code);
    ErrorInfo info = cuda_error(code, "allocate", "release buffers or ask for less").info();
    info.cause = std::to_string(bytes) + " bytes of " + to_string(kind) + " memory on " + name_ + ": " + info.cause;
    throw Error(std::move(info));
}

void CudaDevice::release_unaligned(MemoryKind kind, void* memory) noexcept {
    switch (kind) {
        case MemoryKind::device:
        case MemoryKind::managed:
            cuda_worked(cudaFree(memory));
            break;
        case MemoryKind::pinned:
            cuda_worked(cudaFreeHost(memory));
            break;
        case MemoryKind::system:
            ::operator delete(memory, std::align_val_t(kDeviceAlignment));
            break;
    }
}

void* CudaDevice::allocate(MemoryKind kind, std::uint64_t bytes) {
    if (bytes == 0) throw Error(ErrorCode::invalid_argument, "allocate", "0 bytes asked", "ask for at least 1");
    if (kind == MemoryKind::device) return kept_.take(bytes);
    return allocate_aligned(kind, bytes);
}

void CudaDevice::release(MemoryKind kind, void* memory) noexcept {
    if (memory == nullptr) return;
    if (kind == MemoryKind::device && kept_.give_back(memory)) return;
    release_aligned(kind, memory);
}

KeptMemory::MemorySource CudaDevice::memory_source() {
    return {[this](std::uint64_t bytes) { return allocate_aligned(MemoryKind::device, bytes); },
            [this](void* memory) { release_aligned(MemoryKind::device, memory); },
            [this] {
                const ScopedCudaDevice scope(facts_.index, std::nothrow);
                return cuda_worked(cudaDeviceSynchronize());
            }};
}

// CUDA aligns small allocations to 512 bytes or so, but files need pages.
void* CudaDevice::allocate_aligned(MemoryKind kind, std::uint64_t bytes) {
    const ScopedCudaDevice scope(facts_.index);
    void* memory = allocate_unaligned(kind, bytes);
    if (reinterpret_cast<std::uintptr_t>(memory) % kDeviceAlignment == 0) return memory;
    release_unaligned(kind, memory);
    memory = allocate_unaligned(kind, bytes + kDeviceAlignment);
    const auto given = reinterpret_cast<std::uintptr_t>(memory);
    auto* aligned = static_cast<std::byte*>(memory) + (align_up(given, kDeviceAlignment) - given);
    const std::lock_guard lock(mutex_);
    moved_[aligned] = memory;
    return aligned;
}

void CudaDevice::release_aligned(MemoryKind kind, void* memory) noexcept {
    {
        const std::lock_guard lock(mutex_);
        if (const auto at = moved_.find(memory); at != moved_.end()) {
            memory = at->second;
            moved_.erase(at);
        }
    }
    const ScopedCudaDevice scope(facts_.index, std::nothrow);
    release_unaligned(kind, memory);
}

bool CudaDevice::register_host(void* memory, std::uint64_t bytes, bool read_only, std::string& why) {
    if (!registers_) {
        why = "this GPU cannot register host memory";
        return false;
    }
    const ScopedCudaDevice scope(facts_.index);
    unsigned flags = cudaHostRegisterPortable | cudaHostRegisterMapped;
    if (read_only && registers_read_only_) flags |= cudaHostRegisterReadOnly;
    const cudaError_t code = cudaHostRegister(memory, bytes, flags);
    if (cuda_worked(code)) return true;
    why = "cudaHostRegister: " + cuda_text(code);
    if (code == cudaErrorInvalidValue) {
        why +=
            "; the driver refuses this memory (mappings of files on disk file systems such as ext4 are refused, "
            "those of tmpfs and hugetlbfs are not)";
    }
    return false;
}

PointerInfo CudaDevice::pointer_info(const void* memory) {
    const ScopedCudaDevice scope(facts_.index, std::nothrow);
    cudaPointerAttributes attributes{};
    if (!cuda_worked(cudaPointerGetAttributes(&attributes, memory))) return {};
    if (attributes.type == cudaMemoryTypeUnregistered) return {};
    if (attributes.type == cudaMemoryTypeDevice && kept_.keeps(memory)) return {};
    PointerInfo info;
    info.known = true;
    info.device_index = attributes.device;
    info.kind = attributes.type == cudaMemoryTypeHost      ? MemoryKind::pinned
                : attributes.type == cudaMemoryTypeManaged ? MemoryKind::managed
                                                           : MemoryKind::device;
    const AllocationRange extent = extent_of(pointer_attribute_, memory);
    info.base = extent.bytes == 0 ? nullptr : reinterpret_cast<const void*>(extent.base);
    info.bytes = extent.bytes;
    return info;
}

}  // namespace

cudaError_t push_device(int index) noexcept {
    const CUcontext context = primary_context(index);
    if (context == nullptr || context_calls().push == nullptr || context_calls().pop == nullptr) {
        return cudaErrorDevicesUnavailable;
    }
    return context_calls().push(context) == CUDA_SUCCESS ? cudaSuccess : cudaErrorDeviceUninitialized;
}

void pop_device() noexcept {
    CUcontext popped = nullptr;
    static_cast<void>(context_calls().pop(&popped));
}
}  // namespace device

bool built_with_cuda() noexcept { return true; }

int cuda_device_count(std::string& why) {
    int driver = 0, count = 0;
    if (!device::cuda_worked(cudaDriverGetVersion(&driver)) || driver == 0) {
        why = "no NVIDIA driver: libcuda.so.1 was not found or does not load";
        return 0;
    }
    const cudaError_t code = cudaGetDeviceCount(&count);
    if (!device::cuda_worked(code)) {
        why = "cudaGetDeviceCount: " + device::cuda_text(code) + ", driver for CUDA " + std::to_string(driver / 1000) +
              "." + std::to_string(driver % 1000 / 10);
        return 0;
    }
    if (count == 0) why = "the driver sees no CUDA device (CUDA_VISIBLE_DEVICES hides them, or there is none)";
    return count;
}

std::shared_ptr<Device> make_cuda_device(int index) {
    std::string why;
    const int count = cuda_device_count(why);
    if (index >= 0 && index < count) return std::make_shared<device::CudaDevice>(index);
    if (count > 0) why = "there are " + std::to_string(count) + " CUDA devices, numbered from 0";
    throw Error(ErrorCode::unsupported, "open device cuda:" + std::to_string(index), why,
                "use device \"host\" or \"auto\", or see penstock doctor");
}

}  // namespace penstock
