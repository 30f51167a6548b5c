// The kernels that sum segments of memory, one warp for each segment. checksum_lanes.hpp says what a lane does.
#include <cuda_runtime.h>

#include "device/checksum_lanes.hpp"
#include "device/cuda/kernels.hpp"

namespace penstock::device {
namespace {

constexpr unsigned kAllLanes = 0xFFFFFFFF;

template <typename Sum>
__device__ void each_segment(const ChecksumSegment* segments, std::uint64_t* sums, unsigned count, const Sum& sum) {
    const unsigned lane = threadIdx.x % kChecksumLanes;
    const unsigned stride = gridDim.x * (kKernelThreads / kChecksumLanes);
    for (unsigned i = blockIdx.x * (kKernelThreads / kChecksumLanes) + threadIdx.x / kChecksumLanes; i < count;
         i += stride) {
        const std::uint64_t value = sum(segments[i], lane);
        if (lane == 0) sums[i] = value;
    }
}

// Of all lanes, for the first one.
__device__ TwoSums of_warp(TwoSums mine) {
    for (unsigned step = kChecksumLanes / 2; step != 0; step /= 2) {
        mine.low += __shfl_down_sync(kAllLanes, mine.low, step);
        mine.high += __shfl_down_sync(kAllLanes, mine.high, step);
    }
    return mine;
}

__global__ void __launch_bounds__(kKernelThreads)
    sum_adler(const ChecksumSegment* __restrict__ segments, std::uint64_t* __restrict__ sums, unsigned count) {
    each_segment(segments, sums, count, [](const ChecksumSegment& segment, unsigned lane) {
        return adler_segment(of_warp(adler_of_lane(segment, lane)));
    });
}

__global__ void __launch_bounds__(kKernelThreads)
    sum_fletcher(const ChecksumSegment* __restrict__ segments, std::uint64_t* __restrict__ sums, unsigned count) {
    each_segment(segments, sums, count, [](const ChecksumSegment& segment, unsigned lane) {
        return fletcher_segment(of_warp(fletcher_of_lane(segment, lane)));
    });
}

__global__ void __launch_bounds__(kKernelThreads)
    sum_crc(const ChecksumSegment* __restrict__ segments, std::uint64_t* __restrict__ sums, unsigned count) {
    __shared__ CrcTables tables;
    fill_by_word(tables, threadIdx.x);  // there are as many threads as entries
    __syncthreads();
    fill_by_row(tables, threadIdx.x);
    __syncthreads();
    each_segment(segments, sums, count, [&](const ChecksumSegment& segment, unsigned lane) -> std::uint64_t {
        const std::uint32_t mine = crc_of_lane(tables, segment, lane);
        std::uint32_t crc = 0;
        if (segment.bytes >= kRowBytes) {
            for (unsigned i = 0; i < kChecksumLanes; ++i) crc = add_lane(tables, crc, __shfl_sync(kAllLanes, mine, i));
        }
        return lane == 0 ? add_crc_tail(tables, segment, crc) : 0;
    });
}

static_assert(kKernelThreads == 256, "a thread for each entry of a table");

cudaError_t launch(const void* kernel, const ChecksumLaunch& of, int processors, cudaStream_t stream) {
    const unsigned warps = kKernelThreads / kChecksumLanes;
    const unsigned wanted = (of.count + warps - 1) / warps;
    const unsigned most = static_cast<unsigned>(processors) * kKernelBlocksPerProcessor;
    const ChecksumSegment* segments = of.segments;
    std::uint64_t* sums = of.sums;
    unsigned count = of.count;
    void* arguments[] = {&segments, &sums, &count};
    return cudaLaunchKernel(kernel, dim3(wanted < most ? wanted : most), dim3(kKernelThreads), arguments, 0, stream);
}

}  // namespace

cudaError_t launch_sum_adler(const ChecksumLaunch& of, int processors, cudaStream_t stream) {
    return launch(reinterpret_cast<const void*>(&sum_adler), of, processors, stream);
}

cudaError_t launch_sum_fletcher(const ChecksumLaunch& of, int processors, cudaStream_t stream) {
    return launch(reinterpret_cast<const void*>(&sum_fletcher), of, processors, stream);
}

cudaError_t launch_sum_crc(const ChecksumLaunch& of, int processors, cudaStream_t stream) {
    return launch(reinterpret_cast<const void*>(&sum_crc), of, processors, stream);
}

}  // namespace penstock::device
