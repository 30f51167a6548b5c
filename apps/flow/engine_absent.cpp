// Replaces engine_cuda.cpp in a build without CUDA: it throws an Error that says so.
#include "flow/engine.hpp"

namespace penstock::flow {

std::unique_ptr<Engine> make_gpu_engine(const Context&) {
    throw Error(ErrorCode::unsupported, "make a flow model on a GPU", "this build has no CUDA", "use the device host");
}

}  // namespace penstock::flow
