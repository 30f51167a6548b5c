// Compiles kernels for the Laplace functors.
#include "hmatrix/gpu/leaf_kernels.hpp"
#include "hmatrix/kernel/galerkin.hpp"

PENSTOCK_HMATRIX_ON_GPU(penstock::hmatrix::LaplaceCollocation);
PENSTOCK_HMATRIX_ON_GPU(penstock::hmatrix::LaplaceGalerkin);
