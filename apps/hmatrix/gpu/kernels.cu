// Kernels of vectors.
//
// These kernels add in a fixed order, so they give the same bits on every run. The products do not: they add rows of
// different leaves in the order in which warps finish.
#include "hmatrix/gpu/kernels.hpp"

namespace penstock::hmatrix::gpu {
namespace {

constexpr int kWarp = 32;
constexpr int kThreads = 256;

int blocks_for(std::int64_t count) {
    constexpr std::int64_t kMost = 4096;
    const std::int64_t blocks = (count + kThreads - 1) / kThreads;
    return static_cast<int>(blocks < kMost ? blocks : kMost);
}

__device__ std::int64_t first_item() { return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ std::int64_t stride() { return std::int64_t{gridDim.x} * blockDim.x; }

// The bits of doubles without a sign compare like their values. NaN compares larger than all numbers.
__global__ void __launch_bounds__(kThreads) largest_size(const __grid_constant__ Scaled what) {
    const double* const from = what.from + blockIdx.y * what.rows;
    unsigned long long most = 0;
    for (std::int64_t i = first_item(); i < what.rows; i += stride()) {
        const auto bits = static_cast<unsigned long long>(__double_as_longlong(fabs(from[i])));
        most = bits > most ? bits : most;
    }
    for (int step = kWarp / 2; step > 0; step /= 2) {
        const unsigned long long other = __shfl_down_sync(0xffffffffu, most, step);
        most = other > most ? other : most;
    }
    if (threadIdx.x % kWarp == 0 && most > 0) atomicMax(what.largest + blockIdx.y, most);
}

__device__ int exponent_of(const Scaled& what) {
    const double size = __longlong_as_double(static_cast<long long>(what.largest[blockIdx.y]));
    if (!(size > 0) || !isfinite(size)) return 0;
    const int exponent = ilogb(size);
    return exponent < -1000 ? -1000 : (exponent > 1000 ? 1000 : exponent);
}

__global__ void to_single(const __grid_constant__ Scaled what) {
    const double factor = scalbn(1.0, -exponent_of(what));
    const std::int64_t column = blockIdx.y * what.rows;
    for (std::int64_t i = first_item(); i < what.rows; i += stride()) {
        what.to[column + i] = static_cast<float>(factor * what.from[column + i]);
    }
}

__global__ void scale_back(const __grid_constant__ Scaled what, double* y) {
    const double factor = scalbn(1.0, exponent_of(what));
    for (std::int64_t i = first_item(); i < what.rows; i += stride()) y[blockIdx.y * what.rows + i] *= factor;
}

__global__ void axpby(Axpby what, std::int64_t count) {
    for (std::int64_t i = first_item(); i < count; i += stride()) {
        what.y[i] = what.a * what.x[i] + (what.b == 0 ? 0 : what.b * what.y[i]);
    }
}

// The sum over the threads of a block; only thread 0 receives it.
__device__ double block_sum(double value) {
    __shared__ double of_warp[kThreads / kWarp];
    for (int step = kWarp / 2; step > 0; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);
    __syncthreads();  // until thread 0 has read the previous sum
    if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = value;
    __syncthreads();
    double sum = 0;
    if (threadIdx.x == 0) {
        for (int warp = 0; warp < kThreads / kWarp; ++warp) sum += of_warp[warp];
    }
    return sum;
}

// Each block sums its own range of rows, for every column.
__global__ void __launch_bounds__(kThreads) dots_by_block(const __grid_constant__ Dots what) {
    const std::int64_t share = (what.rows + kDotBlocks - 1) / kDotBlocks;
    const std::int64_t begin = share * blockIdx.x;
    const std::int64_t end = begin + share < what.rows ? begin + share : what.rows;
    for (std::int64_t j = 0; j < what.columns; ++j) {
        const double* const column = what.basis + j * what.rows;
        double sum = 0;
        for (std::int64_t i = begin + threadIdx.x; i < end; i += kThreads) sum += column[i] * what.x[i];
        sum = block_sum(sum);
        if (threadIdx.x == 0) what.partial[j * kDotBlocks + blockIdx.x] = sum;
    }
}

__global__ void __launch_bounds__(kThreads) join_dots(const __grid_constant__ Dots what) {
    double sum = 0;
    for (int i = threadIdx.x; i < kDotBlocks; i += kThreads) sum += what.partial[blockIdx.x * kDotBlocks + i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) what.result[blockIdx.x] = sum;
}

__global__ void combine(const __grid_constant__ Combination what) {
    for (std::int64_t i = first_item(); i < what.rows; i += stride()) {
        double sum = what.y[i];
        for (int j = 0; j < what.columns; ++j) sum += what.factor[j] * what.basis[j * what.rows + i];
        what.y[i] = sum;
    }
}

__global__ void __launch_bounds__(kThreads) block_diagonal(const __grid_constant__ BlockDiagonal what) {
    const std::int64_t begin = what.offsets[blockIdx.x];
    const int size = static_cast<int>(what.offsets[blockIdx.x + 1] - begin);
    const float* const matrix = what.matrices + what.places[blockIdx.x];
    extern __shared__ float x[];
    for (int i = threadIdx.x; i < size; i += kThreads) x[i] = static_cast<float>(what.x[begin + i]);
    __syncthreads();
    for (int row = threadIdx.x; row < size; row += kThreads) {
        float sum = 0;
        for (int j = 0; j < size; ++j) sum += matrix[std::int64_t{j} * size + row] * x[j];
        what.y[begin + row] = sum;
    }
}

}  // namespace

cudaError_t launch_to_single(const Scaled& what, cudaStream_t stream) {
    const auto columns = static_cast<unsigned>(what.columns);
    const dim3 blocks(static_cast<unsigned>(blocks_for(what.rows)), columns);
    const cudaError_t cleared = cudaMemsetAsync(what.largest, 0, columns * sizeof(*what.largest), stream);
    if (cleared != cudaSuccess) return cleared;
    largest_size<<<blocks, kThreads, 0, stream>>>(what);
    to_single<<<blocks, kThreads, 0, stream>>>(what);
    return cudaGetLastError();
}

cudaError_t launch_scale_back(const Scaled& what, double* y, cudaStream_t stream) {
    const dim3 blocks(static_cast<unsigned>(blocks_for(what.rows)), static_cast<unsigned>(what.columns));
    scale_back<<<blocks, kThreads, 0, stream>>>(what, y);
    return cudaGetLastError();
}

cudaError_t launch_axpby(const Axpby& what, std::int64_t count, cudaStream_t stream) {
    axpby<<<blocks_for(count), kThreads, 0, stream>>>(what, count);
    return cudaGetLastError();
}

cudaError_t launch_dots(const Dots& what, cudaStream_t stream) {
    if (what.columns == 0) return cudaSuccess;
    dots_by_block<<<kDotBlocks, kThreads, 0, stream>>>(what);
    join_dots<<<static_cast<unsigned>(what.columns), kThreads, 0, stream>>>(what);
    return cudaGetLastError();
}

cudaError_t launch_block_diagonal(const BlockDiagonal& what, cudaStream_t stream) {
    constexpr int kLargest = 1024;  // equal to kLargestBlock of block_jacobi.hpp
    block_diagonal<<<static_cast<unsigned>(what.blocks), kThreads, kLargest * sizeof(float), stream>>>(what);
    return cudaGetLastError();
}

cudaError_t launch_combine(const Combination& what, cudaStream_t stream) {
    combine<<<blocks_for(what.rows), kThreads, 0, stream>>>(what);
    return cudaGetLastError();
}

}  // namespace penstock::hmatrix::gpu
