// Replaces compute_cuda.cpp in a build without CUDA: it throws an Error that says so.
#include "hmatrix/system/compute.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {

std::unique_ptr<Compute> make_gpu_compute(const Context&, const MatrixFile&) {
    throw Error(ErrorCode::unsupported, "multiply on a GPU", "this build has no CUDA", "use the device host");
}

}  // namespace penstock::hmatrix
