// The kernels that sort particles into cells, and that gather rows. cub sorts pairs of one type of key and one of
// value, which keeps the library small. Runs of sorted keys are found by their ends. A warp reduces the bounds of the
// cells that it meets before it touches memory. The least and the greatest of numbers do not depend on the order in
// which warps come, so that results have the same bits each time.
#include <cuda_runtime.h>

#include <cub/device/device_radix_sort.cuh>

#include "device/cuda/kernels.hpp"
#include "device/cuda/sort/sort_kernels.hpp"

namespace penstock::device {
namespace {

constexpr unsigned kSortLanes = 32;
constexpr unsigned kEveryLane = 0xFFFFFFFF;

__device__ std::uint64_t first_item() { return std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ std::uint64_t all_threads() { return std::uint64_t{gridDim.x} * blockDim.x; }

template <class Number>
__global__ void __launch_bounds__(kKernelThreads) find_keys(const CellLaunch launch) {
    const auto* positions = static_cast<const Number*>(launch.positions);
    for (std::uint64_t i = first_item(); i < launch.particles; i += all_threads()) {
        const LanePosition here = position_of(positions, i);
        const std::uint32_t cell = cell_of(launch.grid, here);
        launch.keys[i] = cell;
        if (!is_finite(here)) atomicMin(&launch.faults->bad, static_cast<unsigned long long>(i));
        if (launch.order != nullptr) {
            launch.order[i] = static_cast<std::uint32_t>(i);
        } else if (i > 0 && cell < cell_of(launch.grid, position_of(positions, i - 1))) {
            atomicMin(&launch.faults->unsorted, static_cast<unsigned long long>(i));
        }
    }
}

__global__ void __launch_bounds__(kKernelThreads) empty_runs(OpenRun* __restrict__ runs, std::uint64_t cells,
                                                             unsigned long long lowest, unsigned long long greatest) {
    for (std::uint64_t cell = first_item(); cell < cells; cell += all_threads()) {
        runs[cell] = {0, 0, {greatest, greatest, greatest}, {lowest, lowest, lowest}};
    }
}

struct LaneBounds {
    unsigned long long least[3], most[3];
};

// Joins those lanes behind this one that have its key, which lie one behind the other.
__device__ void reduce_bounds(LaneBounds& mine, std::uint32_t key, unsigned lane) {
    for (unsigned step = 1; step < kSortLanes; step *= 2) {
        const bool joins = __shfl_down_sync(kEveryLane, key, step) == key && lane + step < kSortLanes;
        for (int i = 0; i < 3; ++i) {
            const unsigned long long least = __shfl_down_sync(kEveryLane, mine.least[i], step);
            const unsigned long long most = __shfl_down_sync(kEveryLane, mine.most[i], step);
            if (joins && least < mine.least[i]) mine.least[i] = least;
            if (joins && most > mine.most[i]) mine.most[i] = most;
        }
    }
}

// Most warps of a crowded cell change nothing, and see so before they take the cell from all others.
__device__ void join_bounds(OpenRun& run, const LaneBounds& mine) {
    for (int i = 0; i < 3; ++i) {
        if (mine.least[i] < *static_cast<volatile unsigned long long*>(&run.least[i])) {
            atomicMin(&run.least[i], mine.least[i]);
        }
        if (mine.most[i] > *static_cast<volatile unsigned long long*>(&run.most[i])) {
            atomicMax(&run.most[i], mine.most[i]);
        }
    }
}

template <class Number>
__global__ void __launch_bounds__(kKernelThreads) find_runs(const CellLaunch launch) {
    constexpr std::uint32_t kNoCell = 0xFFFFFFFF;
    const auto* positions = static_cast<const Number*>(launch.positions);
    const unsigned lane = threadIdx.x % kSortLanes;
    // All lanes of a warp go round equally often.
    for (std::uint64_t base = first_item() - lane; base < launch.particles; base += all_threads()) {
        const std::uint64_t i = base + lane;
        const bool has_item = i < launch.particles;
        const std::uint32_t key = has_item ? launch.keys[i] : kNoCell;
        LaneBounds mine{};
        if (has_item) {
            if (i == 0 || launch.keys[i - 1] != key) launch.runs[key].first = i;
            if (i + 1 == launch.particles || launch.keys[i + 1] != key) launch.runs[key].end = i + 1;
            const LanePosition here = position_of(positions, launch.order == nullptr ? i : launch.order[i]);
            for (int d = 0; d < 3; ++d) mine.least[d] = mine.most[d] = ordered_bits(here.at[d]);
        }
        reduce_bounds(mine, key, lane);
        const std::uint32_t before = __shfl_up_sync(kEveryLane, key, 1);
        if (has_item && (lane == 0 || before != key)) join_bounds(launch.runs[key], mine);
    }
}

// One thread moves one word. `kRowWords`: of a row, 0 where it is any number.
template <class Word, unsigned kRowWords>
__global__ void __launch_bounds__(kKernelThreads) gather_rows(const RowGather gather) {
    const auto* __restrict__ source = static_cast<const Word*>(gather.source);
    const auto* __restrict__ order = gather.order;
    auto* __restrict__ destination = static_cast<Word*>(gather.destination);
    const std::uint64_t row_words = kRowWords != 0 ? kRowWords : gather.row_bytes / sizeof(Word);
    const std::uint64_t words = gather.rows * row_words;
    for (std::uint64_t i = first_item(); i < words; i += all_threads()) {
        const std::uint64_t row = i / row_words;
        destination[i] = source[order[row] * row_words + (i - row * row_words)];
    }
}

unsigned blocks_of(std::uint64_t items, int processors) {
    const std::uint64_t wanted = (items + kKernelThreads - 1) / kKernelThreads;
    const std::uint64_t most = static_cast<std::uint64_t>(processors) * kKernelBlocksPerProcessor;
    return static_cast<unsigned>(wanted < most ? wanted : most);
}

template <class Word>
void launch_words(const RowGather& gather, int processors, cudaStream_t stream) {
    const std::uint64_t row_words = gather.row_bytes / sizeof(Word);
    const unsigned blocks = blocks_of(gather.rows * row_words, processors);
    if (row_words == 1) {
        gather_rows<Word, 1><<<blocks, kKernelThreads, 0, stream>>>(gather);
    } else if (row_words == 3) {
        gather_rows<Word, 3><<<blocks, kKernelThreads, 0, stream>>>(gather);
    } else {
        gather_rows<Word, 0><<<blocks, kKernelThreads, 0, stream>>>(gather);
    }
}

}  // namespace

cudaError_t launch_keys(const CellLaunch& launch, int processors, cudaStream_t stream) {
    const unsigned blocks = blocks_of(launch.particles, processors);
    if (launch.is_double) {
        find_keys<double><<<blocks, kKernelThreads, 0, stream>>>(launch);
    } else {
        find_keys<float><<<blocks, kKernelThreads, 0, stream>>>(launch);
    }
    return cudaGetLastError();
}

cudaError_t launch_runs(const CellLaunch& launch, int processors, cudaStream_t stream) {
    constexpr double kGreatestPlace = 1.7976931348623157e308;
    empty_runs<<<blocks_of(launch.cells, processors), kKernelThreads, 0, stream>>>(
        launch.runs, launch.cells, ordered_bits(-kGreatestPlace), ordered_bits(kGreatestPlace));
    if (launch.particles == 0) return cudaGetLastError();
    const unsigned blocks = blocks_of(launch.particles, processors);
    if (launch.is_double) {
        find_runs<double><<<blocks, kKernelThreads, 0, stream>>>(launch);
    } else {
        find_runs<float><<<blocks, kKernelThreads, 0, stream>>>(launch);
    }
    return cudaGetLastError();
}

cudaError_t sort_pairs(PairSort& pairs, cudaStream_t stream) {
    cub::DoubleBuffer<std::uint32_t> keys(pairs.keys, pairs.other_keys), values(pairs.values, pairs.other_values);
    const cudaError_t code = cub::DeviceRadixSort::SortPairs(pairs.scratch, pairs.scratch_bytes, keys, values,
                                                             pairs.count, 0, pairs.bits, stream);
    pairs.keys = keys.Current();
    pairs.values = values.Current();
    pairs.other_keys = keys.Alternate();
    pairs.other_values = values.Alternate();
    return code;
}

cudaError_t launch_gather(const RowGather& gather, int processors, cudaStream_t stream) {
    const std::uint64_t all = reinterpret_cast<std::uintptr_t>(gather.destination) |
                              reinterpret_cast<std::uintptr_t>(gather.source) | gather.row_bytes;
    if (all % 16 == 0) {
        launch_words<uint4>(gather, processors, stream);
    } else if (all % 8 == 0) {
        launch_words<std::uint64_t>(gather, processors, stream);
    } else if (all % 4 == 0) {
        launch_words<std::uint32_t>(gather, processors, stream);
    } else {
        launch_words<std::uint8_t>(gather, processors, stream);
    }
    return cudaGetLastError();
}

}  // namespace penstock::device
