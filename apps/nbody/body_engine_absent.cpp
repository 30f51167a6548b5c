// Replaces body_kernels.cu in a build without CUDA: it throws an Error that says so.
#include "nbody/body_engine.hpp"

namespace penstock::nbody {

std::unique_ptr<BodyEngine> make_body_engine_of_gpu(const Context&) {
    throw Error(ErrorCode::unsupported, "make bodies on a GPU", "this build has no CUDA", "use the device host");
}

}  // namespace penstock::nbody
