// Starting the kernels of vectors. What nvcc compiles stands behind these functions; errors are CUDA's own.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace penstock::hmatrix::gpu {

// Vectors in single precision, each column divided by the power of two that is next below its largest number: sums
// neither overflow nor lose small vectors, such as residuals, whatever their unit. At most 65,535 columns.
struct Scaled {
    const double* from;  // column-major
    float* to;
    std::int64_t rows;
    std::int64_t columns;
    unsigned long long* largest;  // of each column: its largest number's bits
};
cudaError_t launch_to_single(const Scaled& what, cudaStream_t stream);
// y *= what the columns were divided by.
cudaError_t launch_scale_back(const Scaled& what, double* y, cudaStream_t stream);

// y = a x + b y, elementwise; b = 0 does not read y.
struct Axpby {
    double a;
    const double* x;
    double b;
    double* y;
};
cudaError_t launch_axpby(const Axpby& what, std::int64_t count, cudaStream_t stream);

// result[j] = column j . x for `columns` columns of `rows` doubles. `partial` has room for columns * kDotBlocks.
constexpr int kDotBlocks = 512;
struct Dots {
    const double* basis;
    const double* x;
    std::int64_t rows;
    std::int64_t columns;
    double* partial;
    double* result;
};
cudaError_t launch_dots(const Dots& what, cudaStream_t stream);

// y += sum of factor[j] * column j.
constexpr int kCombineAtOnce = 64;
struct Combination {
    const double* basis;
    std::int64_t rows;
    int columns;
    double* y;
    double factor[kCombineAtOnce];
};
cudaError_t launch_combine(const Combination& what, cudaStream_t stream);

// y of block b = matrix b * x of block b; column-major at places[b], of offsets[b + 1] - offsets[b] rows.
struct BlockDiagonal {
    const float* matrices;
    const std::int64_t* offsets;
    const std::int64_t* places;
    std::int64_t blocks;
    const double* x;
    double* y;
};
cudaError_t launch_block_diagonal(const BlockDiagonal& what, cudaStream_t stream);

}  // namespace penstock::hmatrix::gpu
