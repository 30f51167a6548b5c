// Launchers of the device kernels: batched copies, boxes, packs, checksums, stamps and their checks. They use plain
// types only, so that nvcc and the host compiler can read this file. Each returns the error of its launch, and none
// waits.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "device/packs/pack_lanes.hpp"

namespace penstock::device {

inline constexpr unsigned kKernelThreads = 256;           // of a block, in every kernel here
inline constexpr unsigned kKernelBlocksPerProcessor = 8;  // enough to fill it: boxes, packs, checksums

// What one warp copies. A piece of a batch becomes one or more tasks.
struct CopyTask {
    void* destination;
    const void* source;
    std::uint64_t bytes;
};

// In device memory. The host sets it to {0, ~0} before a check.
struct StampResult {
    unsigned long long bad_bytes;
    unsigned long long first_bad_offset;
};

struct StampRange {
    unsigned char* memory = nullptr;
    std::uint64_t bytes = 0;
    std::uint64_t file_offset = 0;
    std::uint64_t seed = 0;
};

struct BoxWork;

// Boxes in device memory: see box_lanes.hpp. Requires: units > 0.
struct BoxLaunch {
    const std::uint64_t* first_units = nullptr;  // count + 1 entries
    const BoxWork* works = nullptr;
    std::uint32_t count = 0;
    std::uint64_t units = 0;
};

// Works of packs of one kind in device memory: see pack_lanes.hpp. Requires: units > 0.
struct PackLaunch {
    PackKind kind{};
    const std::uint64_t* first_units = nullptr;  // count + 1 entries
    const PackWork* works = nullptr;
    std::uint32_t count = 0;
    std::uint64_t units = 0;
};

struct ChecksumSegment;

// Segments in device memory (see checksum_lanes.hpp), and room for as many sums. Requires: count > 0.
struct ChecksumLaunch {
    const ChecksumSegment* segments = nullptr;
    std::uint64_t* sums = nullptr;
    std::uint32_t count = 0;
};

// Requires: the device can read `tasks` until the kernel is done. `processors` is the device's number of SMs.
cudaError_t launch_copy_tasks(const CopyTask* tasks, std::uint32_t count, int processors, cudaStream_t stream);
cudaError_t launch_stamp(const StampRange& range, int processors, cudaStream_t stream);
cudaError_t launch_verify_stamp(const StampRange& range, StampResult* result, int processors, cudaStream_t stream);
cudaError_t launch_move_boxes(const BoxLaunch& launch, int processors, cudaStream_t stream);
cudaError_t launch_packs(const PackLaunch& launch, int processors, cudaStream_t stream);
cudaError_t launch_sum_adler(const ChecksumLaunch& launch, int processors, cudaStream_t stream);
cudaError_t launch_sum_fletcher(const ChecksumLaunch& launch, int processors, cudaStream_t stream);
cudaError_t launch_sum_crc(const ChecksumLaunch& launch, int processors, cudaStream_t stream);

}  // namespace penstock::device
