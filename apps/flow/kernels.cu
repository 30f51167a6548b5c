// Passes as kernels: a thread has a cell. Warps lie along z, which is nearest in memory.
#include "flow/kernels.hpp"

namespace penstock::flow {
namespace {

constexpr int kThreadsZ = 32;
constexpr int kThreadsX = 4;
constexpr int kThreads = kThreadsZ * kThreadsX;
constexpr int kBlocks = 4;  // that a multiprocessor has at a time: leaves 128 registers to a thread

template <class Pass>
__global__ void __launch_bounds__(kThreads, kBlocks) each_cell(const __grid_constant__ Pass pass, int halo) {
    const int z = static_cast<int>(blockIdx.x * kThreadsZ + threadIdx.x) - halo;
    const int x = static_cast<int>(blockIdx.y * kThreadsX + threadIdx.y) - halo;
    const int y = static_cast<int>(blockIdx.z) - halo;
    if (z < pass.grid.nz + halo && x < pass.grid.nx + halo) pass(x, y, z);
}

unsigned blocks(int cells, int halo, int threads) {
    return static_cast<unsigned>((cells + 2 * halo + threads - 1) / threads);
}

template <class Pass>
cudaError_t launch_over(const Pass& pass, int halo, cudaStream_t stream) {
    const Grid& grid = pass.grid;
    const dim3 many(blocks(grid.nz, halo, kThreadsZ), blocks(grid.nx, halo, kThreadsX), blocks(grid.ny, halo, 1));
    each_cell<Pass><<<many, dim3(kThreadsZ, kThreadsX), 0, stream>>>(pass, halo);
    return cudaGetLastError();
}

}  // namespace

cudaError_t launch(const Close& pass, cudaStream_t stream) { return launch_over(pass, kHalo, stream); }
cudaError_t launch(const Advance& pass, cudaStream_t stream) { return launch_over(pass, 0, stream); }
cudaError_t launch(const Diagnose& pass, cudaStream_t stream) { return launch_over(pass, 0, stream); }

}  // namespace penstock::flow
