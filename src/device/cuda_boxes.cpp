// Boxes on a GPU: until there are kernels for them, an error that says so.
#include "device/cuda_stream.hpp"

namespace penstock::device {
namespace {

[[noreturn]] void refuse(const char* operation) {
    throw Error(ErrorCode::unsupported, operation, "this build moves no boxes on a GPU", "use device \"host\"");
}

}  // namespace

void CudaStream::copy_boxes(std::span<const Box>) { refuse("copy boxes"); }

void CudaStream::fill_boxes(std::span<const Box>, std::span<const std::byte>) { refuse("fill boxes"); }

}  // namespace penstock::device
