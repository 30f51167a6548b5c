// Kernels of the CUDA device.
//
// copy_tasks: one warp copies one task. Tasks are spread over blocks before warps, because one SM reads little from
// host memory and only many SMs fill the link. stamp and verify: a grid-stride loop over the words of a range, two
// words a step if the address allows. Words are aligned in the file. If the address is not aligned to them, the kernel
// assembles them from bytes.
#include <cuda_runtime.h>

#include "device/cuda/kernels.hpp"
#include "penstock/stamp.hpp"

namespace penstock::device {
namespace {

constexpr unsigned kLanesPerWarp = 32;
constexpr unsigned kCopyWarpsPerBlock = kKernelThreads / kLanesPerWarp;

__device__ std::uint64_t address(const void* memory) { return reinterpret_cast<std::uint64_t>(memory); }

// Copies with loads and stores of T. Requires: both pointers have the same offset from T's alignment.
template <typename T>
__device__ void copy_span(unsigned char* to, const unsigned char* from, std::uint64_t bytes, unsigned lane) {
    constexpr int kUnroll = 4;  // loads in flight for each lane, which hide the latency of the link
    const std::uint64_t skew = (sizeof(T) - address(to) % sizeof(T)) % sizeof(T);
    const std::uint64_t head = skew < bytes ? skew : bytes;
    if (lane < head) to[lane] = from[lane];
    T* body_to = reinterpret_cast<T*>(to + head);
    const T* body_from = reinterpret_cast<const T*>(from + head);
    const std::uint64_t count = (bytes - head) / sizeof(T);
    std::uint64_t i = lane;
    for (; i + (kUnroll - 1) * kLanesPerWarp < count; i += kUnroll * kLanesPerWarp) {
        T held[kUnroll];
#pragma unroll
        for (int k = 0; k < kUnroll; ++k) held[k] = body_from[i + k * kLanesPerWarp];
#pragma unroll
        for (int k = 0; k < kUnroll; ++k) body_to[i + k * kLanesPerWarp] = held[k];
    }
    for (; i < count; i += kLanesPerWarp) body_to[i] = body_from[i];
    const std::uint64_t done = head + count * sizeof(T);
    if (done + lane < bytes) to[done + lane] = from[done + lane];  // at most 15 bytes are left
}

__device__ void copy_task(const CopyTask& task, unsigned lane) {
    auto* to = static_cast<unsigned char*>(task.destination);
    const auto* from = static_cast<const unsigned char*>(task.source);
    const std::uint64_t difference = address(to) ^ address(from);
    if (difference % 16 == 0) {
        copy_span<uint4>(to, from, task.bytes, lane);
    } else if (difference % 8 == 0) {
        copy_span<unsigned long long>(to, from, task.bytes, lane);
    } else if (difference % 4 == 0) {
        copy_span<unsigned>(to, from, task.bytes, lane);
    } else {
        copy_span<unsigned char>(to, from, task.bytes, lane);
    }
}

__global__ void __launch_bounds__(kKernelThreads) copy_tasks(const CopyTask* tasks, unsigned count) {
    const unsigned lane = threadIdx.x % kLanesPerWarp;
    const unsigned first = (threadIdx.x / kLanesPerWarp) * gridDim.x + blockIdx.x;
    for (unsigned i = first; i < count; i += gridDim.x * kCopyWarpsPerBlock) copy_task(tasks[i], lane);
}

// The range, cut at the file's word boundaries. Does the same as split_stamp of stamp_host.hpp, which nvcc does not
// read.
struct Words {
    unsigned char* memory;  // the address of the first whole word
    std::uint64_t count;
    std::uint64_t first;  // word index in the file
    std::uint64_t head_bytes, tail_bytes;
};

__host__ __device__ Words words_of(const StampRange& range) {
    const std::uint64_t to_word = (8 - range.file_offset % 8) % 8;
    const std::uint64_t head = to_word < range.bytes ? to_word : range.bytes;
    return {range.memory + head, (range.bytes - head) / 8, (range.file_offset + head) / 8, head,
            (range.bytes - head) % 8};
}

// Finds the byte of a cut word that this thread handles, if any. Heads and tails have at most 7 bytes each.
__device__ bool cut_byte(const StampRange& range, const Words& words, std::uint64_t* index) {
    if (blockIdx.x != 0 || threadIdx.x >= 16) return false;
    const std::uint64_t place = threadIdx.x % 8;
    const bool head = threadIdx.x < 8;
    *index = head ? place : range.bytes - words.tail_bytes + place;
    return place < (head ? words.head_bytes : words.tail_bytes);
}

__device__ std::uint64_t load_word(const unsigned char* at) {
    if (address(at) % 8 == 0) return *reinterpret_cast<const unsigned long long*>(at);
    std::uint64_t word = 0;
    for (int i = 0; i < 8; ++i) word |= static_cast<std::uint64_t>(at[i]) << (8 * i);
    return word;
}

__device__ void store_word(unsigned char* at, std::uint64_t word) {
    if (address(at) % 8 == 0) {
        *reinterpret_cast<unsigned long long*>(at) = word;
        return;
    }
    for (int i = 0; i < 8; ++i) at[i] = static_cast<unsigned char>(word >> (8 * i));
}

__global__ void __launch_bounds__(kKernelThreads) stamp(StampRange range, Words words) {
    const std::uint64_t stride = static_cast<std::uint64_t>(gridDim.x) * kKernelThreads;
    const std::uint64_t thread = static_cast<std::uint64_t>(blockIdx.x) * kKernelThreads + threadIdx.x;
    std::uint64_t paired = 0;
    if (address(words.memory) % 16 == 0) {
        paired = words.count / 2;
        auto* to = reinterpret_cast<ulonglong2*>(words.memory);
        for (std::uint64_t i = thread; i < paired; i += stride) {
            to[i] = make_ulonglong2(stamp_word(range.seed, words.first + 2 * i),
                                    stamp_word(range.seed, words.first + 2 * i + 1));
        }
    }
    for (std::uint64_t i = 2 * paired + thread; i < words.count; i += stride) {
        store_word(words.memory + 8 * i, stamp_word(range.seed, words.first + i));
    }
    std::uint64_t index = 0;
    if (cut_byte(range, words, &index)) range.memory[index] = stamp_byte(range.seed, range.file_offset + index);
}

struct Finding {
    unsigned long long bad_bytes = 0;
    unsigned long long first = ~0ull;
    __device__ void note(unsigned long long bytes, unsigned long long offset) {
        bad_bytes += bytes;
        first = offset < first ? offset : first;
    }
};

// A warp that found something makes one atomic operation of each kind. Other warps make none.
__device__ void report(Finding finding, StampResult* result) {
    if (!__any_sync(~0u, finding.bad_bytes != 0)) return;
    for (int step = kLanesPerWarp / 2; step > 0; step /= 2) {
        finding.bad_bytes += __shfl_down_sync(~0u, finding.bad_bytes, step);
        const unsigned long long other = __shfl_down_sync(~0u, finding.first, step);
        finding.first = other < finding.first ? other : finding.first;
    }
    if (threadIdx.x % kLanesPerWarp != 0) return;
    atomicAdd(&result->bad_bytes, finding.bad_bytes);
    atomicMin(&result->first_bad_offset, finding.first);
}

__global__ void __launch_bounds__(kKernelThreads) verify_stamp(StampRange range, Words words, StampResult* result) {
    const std::uint64_t stride = static_cast<std::uint64_t>(gridDim.x) * kKernelThreads;
    const std::uint64_t thread = static_cast<std::uint64_t>(blockIdx.x) * kKernelThreads + threadIdx.x;
    Finding finding;
    std::uint64_t paired = 0;
    if (address(words.memory) % 16 == 0) {
        paired = words.count / 2;
        const auto* from = reinterpret_cast<const ulonglong2*>(words.memory);
        for (std::uint64_t i = thread; i < paired; i += stride) {
            const ulonglong2 got = from[i];
            const std::uint64_t word = words.first + 2 * i;
            if (got.x != stamp_word(range.seed, word)) finding.note(8, 8 * word);
            if (got.y != stamp_word(range.seed, word + 1)) finding.note(8, 8 * (word + 1));
        }
    }
    for (std::uint64_t i = 2 * paired + thread; i < words.count; i += stride) {
        const std::uint64_t word = words.first + i;
        if (load_word(words.memory + 8 * i) != stamp_word(range.seed, word)) finding.note(8, 8 * word);
    }
    std::uint64_t index = 0;
    if (cut_byte(range, words, &index) && range.memory[index] != stamp_byte(range.seed, range.file_offset + index)) {
        finding.note(1, range.file_offset + index);
    }
    report(finding, result);
}

// Returns enough blocks to fill the device, but no more than there is work for.
unsigned blocks_for(std::uint64_t words, int processors) {
    const std::uint64_t wanted = (words / 2 + kKernelThreads - 1) / kKernelThreads;
    const std::uint64_t most = static_cast<std::uint64_t>(processors) * 8;
    return static_cast<unsigned>(wanted < 1 ? 1 : wanted < most ? wanted : most);
}

}  // namespace

cudaError_t launch_copy_tasks(const CopyTask* tasks, std::uint32_t count, int processors, cudaStream_t stream) {
    const unsigned most = processors * 2 > 256 ? static_cast<unsigned>(processors) * 2 : 256u;
    void* arguments[] = {&tasks, &count};
    return cudaLaunchKernel(reinterpret_cast<const void*>(&copy_tasks), dim3(count < most ? count : most),
                            dim3(kKernelThreads), arguments, 0, stream);
}

cudaError_t launch_stamp(const StampRange& range, int processors, cudaStream_t stream) {
    StampRange copy = range;
    Words words = words_of(range);
    void* arguments[] = {&copy, &words};
    return cudaLaunchKernel(reinterpret_cast<const void*>(&stamp), dim3(blocks_for(words.count, processors)),
                            dim3(kKernelThreads), arguments, 0, stream);
}

cudaError_t launch_verify_stamp(const StampRange& range, StampResult* result, int processors, cudaStream_t stream) {
    StampRange copy = range;
    Words words = words_of(range);
    void* arguments[] = {&copy, &words, &result};
    return cudaLaunchKernel(reinterpret_cast<const void*>(&verify_stamp), dim3(blocks_for(words.count, processors)),
                            dim3(kKernelThreads), arguments, 0, stream);
}

}  // namespace penstock::device
