// See file.h. Device code moves the array: one lane finds functions of the host by name, calls each with a block of
// arguments, and waits for its end, as the accelerator of the study did. The host's functions move the bytes from and
// to the array by Penstock. nvcc compiles it for a GPU; the array is managed memory then. A compiler of C++ makes a
// program in which a thread of the host does the same.
extern "C" {
#include "array/file.h"
#include "ranks/ranks.h"
}

#include <penstock/context.hpp>
#include <penstock/device_calls.hpp>
#include <penstock/ondevice/calls.hpp>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

using penstock::HostAnswer;
using penstock::HostCall;
using penstock::ondevice::CallEnd;
using penstock::ondevice::CallsRef;

namespace {

// What the device is to call, and how that ended.
struct Order {
    char function[16];
    unsigned bytes;
    char argument[4096];
    CallEnd end;
};

struct Block {
    double* array;
    unsigned long long bytes;
};

PENSTOCK_ONDEVICE void carry_out(const CallsRef* calls, Order* order) {
    unsigned function = 0;
    const auto found = calls->find(order->function, function);
    if (found != penstock::ondevice::Status::ok) {
        order->end = {found, 0, 0};
        return;
    }
    order->end = calls->call({function, 0, order->argument, order->bytes});
}

#if defined(__CUDACC__)
constexpr const char* kDevice = PENSTOCK_BENCH_DEVICE;
constexpr auto kArray = penstock::MemoryKind::managed;

__global__ void one_lane(const CallsRef* calls, Order* order) { carry_out(calls, order); }

void on_device(const CallsRef* calls, Order* order) {
    cudaSetDevice(std::atoi(kDevice + std::strlen("cuda:")));
    one_lane<<<1, 1>>>(calls, order);
    const cudaError_t error = cudaDeviceSynchronize();
    errno = 0;
    if (error != cudaSuccess) ranks_fail("the kernel failed:", cudaGetErrorString(error));
}

void* shared_memory(std::size_t bytes) {
    void* memory = nullptr;
    const int index = std::atoi(kDevice + std::strlen("cuda:"));
    if (cudaSetDevice(index) != cudaSuccess) return nullptr;
    return cudaMallocManaged(&memory, bytes) == cudaSuccess ? memory : nullptr;
}

void give_back(void* memory) { cudaFree(memory); }
#else
constexpr const char* kDevice = "host";
constexpr auto kArray = penstock::MemoryKind::system;

void on_device(const CallsRef* calls, Order* order) { carry_out(calls, order); }
void* shared_memory(std::size_t bytes) { return std::malloc(bytes); }
void give_back(void* memory) { std::free(memory); }
#endif

struct Served {
    penstock::Context context{{.device = kDevice}};
    penstock::DeviceCalls calls{context, {.timeout = std::chrono::hours(1)}};
    penstock::File file;
    std::string path = "none";
    Order* order = static_cast<Order*>(shared_memory(sizeof(Order)));
};
Served* current = nullptr;

penstock::MemoryView array_of(const HostCall& call) {
    Block block{};
    std::memcpy(&block, call.argument.data(), sizeof block);
    return {block.array, block.bytes, kArray};
}

void add_functions(Served& run) {
    const auto opened = [&run](penstock::OpenMode mode) {
        return [&run, mode](const HostCall& call) {
            const std::string name(reinterpret_cast<const char*>(call.argument.data()), call.argument.size());
            run.file = run.context.open(name, {.mode = mode});
            return HostAnswer{};
        };
    };
    run.calls.add("open to read", opened(penstock::OpenMode::read));
    run.calls.add("open to write", opened(penstock::OpenMode::read_write));
    run.calls.add("read", [&run](const HostCall& call) {
        const auto outcome = run.file.read(array_of(call));
        run.path = outcome.or_throw().evidence.path_name();
        return HostAnswer{static_cast<long long>(outcome.bytes)};
    });
    run.calls.add("write", [&run](const HostCall& call) {
        const auto outcome = run.file.write(array_of(call));
        run.path = outcome.or_throw().evidence.path_name();
        return HostAnswer{static_cast<long long>(outcome.bytes)};
    });
    run.calls.add("sync", [&run](const HostCall&) { return run.file.sync(), HostAnswer{}; });
    run.calls.add("close", [&run](const HostCall&) { return run.file.close(), HostAnswer{}; });
}

// Lets the device call a function, and returns what it answered.
long long call(const char* function, const void* argument, std::size_t bytes) {
    errno = 0;
    if (bytes > sizeof current->order->argument) ranks_fail("too long for a call:", function);
    std::strncpy(current->order->function, function, sizeof current->order->function - 1);
    if (bytes != 0) std::memcpy(current->order->argument, argument, bytes);
    current->order->bytes = static_cast<unsigned>(bytes);
    on_device(current->calls.ref(), current->order);
    if (current->order->end.ok()) return current->order->end.value;
    const auto errors = current->calls.errors();
    ranks_fail("a call of the device failed:", errors.empty() ? function : errors.back().what.c_str());
    return -1;
}

void move(const char* function, const double* array, std::size_t count) {
    const Block block{const_cast<double*>(array), count * sizeof(double)};
    const auto moved = static_cast<unsigned long long>(call(function, &block, sizeof block));
    if (moved != block.bytes) ranks_fail("the file ended early", "");
}

}  // namespace

extern "C" {

double* array_memory(size_t bytes) { return static_cast<double*>(shared_memory(bytes)); }
void array_give_back(double* array) { give_back(array); }

void array_begin(size_t) {
    try {
        current = std::make_unique<Served>().release();  // ended by array_close
        add_functions(*current);
    } catch (const penstock::Error& error) {
        errno = 0;
        ranks_fail("penstock:", error.what());
    }
    if (current->order == nullptr) ranks_fail("no memory for calls", "");
}

void array_open(const char* file, int writes) {
    call(writes ? "open to write" : "open to read", file, std::strlen(file));
}
void array_read(double* array, size_t count) { move("read", array, count); }
void array_write(const double* array, size_t count) { move("write", array, count); }
void array_sync(void) { call("sync", nullptr, 0); }

void array_close(void) {
    call("close", nullptr, 0);
    current->calls.close();
}

const char* array_path(void) { return current->path.c_str(); }
}
