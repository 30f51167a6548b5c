// All that nvcc has to see of the kernel in hmatrix_functor.hpp. A build without CUDA leaves this file out.
#include "hmatrix_functor.hpp"

#include "hmatrix/gpu/leaf_kernels.hpp"

PENSTOCK_HMATRIX_ON_GPU(Yukawa);
