// The kernels that pack numbers: one for each pair of numbers and each kind of piece, so that none has the registers of
// another. Blocks take units by their number, so that one huge pack and thousands of small ones spread over the device
// equally. pack_lanes.hpp says what a thread does with a unit.
#include <cuda_runtime.h>

#include "device/cuda/kernels.hpp"
#include "device/packs/pack_lanes.hpp"

namespace penstock::device {
namespace {

static_assert(kKernelThreads == kPackThreads, "a unit is cut for the threads of a block");

template <class From, class To, unsigned kCount>
__global__ void __launch_bounds__(kKernelThreads)
    pack_in_order(const std::uint64_t* __restrict__ first_units, const PackWork* __restrict__ works, unsigned count) {
    const std::uint64_t units = first_units[count];
    for (std::uint64_t unit = blockIdx.x; unit < units; unit += gridDim.x) {
        const std::uint32_t pack = find_box(first_units, count, unit);
        pack_unit<From, To, kCount>(works[pack], unit - first_units[pack], threadIdx.x);
    }
}

template <class From, class To>
__global__ void __launch_bounds__(kKernelThreads)
    pack_tiles(const std::uint64_t* __restrict__ first_units, const PackWork* __restrict__ works, unsigned count) {
    __shared__ To shared[kTileRoom];
    const std::uint64_t units = first_units[count];
    for (std::uint64_t unit = blockIdx.x; unit < units; unit += gridDim.x) {
        const std::uint32_t pack = find_box(first_units, count, unit);
        load_tile<From, To>(works[pack], unit - first_units[pack], threadIdx.x, shared);
        __syncthreads();
        store_tile<To>(works[pack], unit - first_units[pack], threadIdx.x, shared);
        __syncthreads();  // the next tile overwrites this one
    }
}

struct ChooseKernel {
    PackPiece piece;
    const void*& kernel;
    template <class From, class To>
    void run() const {
        switch (piece) {
            case PackPiece::number: kernel = reinterpret_cast<const void*>(&pack_in_order<From, To, 1>); return;
            case PackPiece::run: kernel = reinterpret_cast<const void*>(&pack_in_order<From, To, kRun>); return;
            case PackPiece::tile: kernel = reinterpret_cast<const void*>(&pack_tiles<From, To>); return;
        }
    }
};

}  // namespace

cudaError_t launch_packs(const PackLaunch& launch, int processors, cudaStream_t stream) {
    const void* kernel = nullptr;
    with_numbers(launch.kind.from, launch.kind.to, ChooseKernel{launch.kind.piece, kernel});
    const std::uint64_t most = static_cast<std::uint64_t>(processors) * kKernelBlocksPerProcessor;
    const std::uint64_t* first_units = launch.first_units;
    const PackWork* works = launch.works;
    unsigned count = launch.count;
    void* arguments[] = {&first_units, &works, &count};
    return cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(launch.units < most ? launch.units : most)),
                            dim3(kKernelThreads), arguments, 0, stream);
}

}  // namespace penstock::device
