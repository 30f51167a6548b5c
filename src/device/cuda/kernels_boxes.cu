// The kernel that moves boxes. Warps take units by their number, so that one huge box and thousands of small ones
// spread over the device equally. box_lanes.hpp says what a warp does with a unit.
#include <cuda_runtime.h>

#include "device/boxes/box_lanes.hpp"
#include "device/cuda/kernels.hpp"

namespace penstock::device {
namespace {

__global__ void __launch_bounds__(kKernelThreads)
    move_boxes(const std::uint64_t* __restrict__ first_units, const BoxWork* __restrict__ works, unsigned count) {
    const std::uint64_t units = first_units[count];
    const std::uint64_t stride = static_cast<std::uint64_t>(gridDim.x) * (kKernelThreads / kBoxLanes);
    const unsigned lane = threadIdx.x % kBoxLanes;
    std::uint64_t unit =
        static_cast<std::uint64_t>(blockIdx.x) * (kKernelThreads / kBoxLanes) + threadIdx.x / kBoxLanes;
    for (; unit < units; unit += stride) {
        const std::uint32_t box = find_box(first_units, count, unit);
        move_unit(works[box], unit - first_units[box], lane);
    }
}

}  // namespace

cudaError_t launch_move_boxes(const BoxLaunch& launch, int processors, cudaStream_t stream) {
    const std::uint64_t wanted = (launch.units + kKernelThreads / kBoxLanes - 1) / (kKernelThreads / kBoxLanes);
    const std::uint64_t most = static_cast<std::uint64_t>(processors) * kKernelBlocksPerProcessor;
    const std::uint64_t* first_units = launch.first_units;
    const BoxWork* works = launch.works;
    unsigned count = launch.count;
    void* arguments[] = {&first_units, &works, &count};
    return cudaLaunchKernel(reinterpret_cast<const void*>(&move_boxes),
                            dim3(static_cast<unsigned>(wanted < most ? wanted : most)), dim3(kKernelThreads), arguments,
                            0, stream);
}

}  // namespace penstock::device
