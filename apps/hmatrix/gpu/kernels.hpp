// Launches the kernels of vectors. nvcc compiles the code behind these functions. They return CUDA's error codes.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace penstock::hmatrix::gpu {

// Vectors in single precision. Each column is divided by the largest power of two that is at most its largest
// magnitude. Sums then neither overflow nor lose small vectors such as residuals, whatever their unit. At most 65,535
// columns.
struct Scaled {
    const double* from;  // column-major
    float* to;
    std::int64_t rows;
    std::int64_t columns;
    unsigned long long* largest;  // for each column the bits of its largest magnitude
};
cudaError_t launch_to_single(const Scaled& what, cudaStream_t stream);
// Multiplies column c of y by the power of two that column c was divided by.
cudaError_t launch_scale_back(const Scaled& what, double* y, cudaStream_t stream);

// y = a x + b y, elementwise. If b is 0, y is not read.
struct Axpby {
    double a;
    const double* x;
    double b;
    double* y;
};
cudaError_t launch_axpby(const Axpby& what, std::int64_t count, cudaStream_t stream);

// result[j] = dot product of column j and x, for `columns` columns of `rows` doubles. Requires: `partial` has room for
// columns * kDotBlocks doubles.
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

// y += sum of factor[j] * column j, for at most kCombineAtOnce columns.
constexpr int kCombineAtOnce = 64;
struct Combination {
    const double* basis;
    std::int64_t rows;
    int columns;
    double* y;
    double factor[kCombineAtOnce];
};
cudaError_t launch_combine(const Combination& what, cudaStream_t stream);

// For each block b: y = matrix b * x, on its part of x and y. Matrix b is column-major at matrices + places[b], with
// offsets[b + 1] - offsets[b] rows.
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
