// Launchers of the kernels that sort particles into cells and gather rows. Each returns the error of its launch, and
// none waits. Memory is that of the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "device/sort/cell_lanes.hpp"
#include "penstock/sort/cell_sort.hpp"

namespace penstock::device {

// The first particles at fault, in device memory. The host sets both to ~0 first.
struct CellFaults {
    unsigned long long bad, unsorted;
};

struct CellLaunch {
    CellLanes grid{};
    const void* positions = nullptr;
    bool is_double = true;
    std::uint64_t particles = 0;       // above 0
    std::uint32_t* keys = nullptr;     // the cell of each particle; sorted when launch_runs reads them
    std::uint32_t* order = nullptr;    // null: particles lie sorted
    CellFaults* faults = nullptr;
    OpenRun* runs = nullptr;
    std::uint64_t cells = 0;
};

// What cub sorts: keys and values, each with a second buffer of the same size. Says in which one each lies at last.
struct PairSort {
    void* scratch = nullptr;  // null: only scratch_bytes is found
    std::size_t scratch_bytes = 0;
    std::uint32_t *keys = nullptr, *other_keys = nullptr;
    std::uint32_t *values = nullptr, *other_values = nullptr;
    std::uint32_t count = 0;
    int bits = 1;  // of keys that may differ
};

cudaError_t launch_keys(const CellLaunch& launch, int processors, cudaStream_t stream);
cudaError_t launch_runs(const CellLaunch& launch, int processors, cudaStream_t stream);
cudaError_t sort_pairs(PairSort& pairs, cudaStream_t stream);
cudaError_t launch_gather(const RowGather& gather, int processors, cudaStream_t stream);

}  // namespace penstock::device
