// Replaces cuda.cpp in builds without nvcc: asking for a GPU gives a reason and never a crash.
#include "penstock/device.hpp"

namespace penstock {
namespace {

constexpr const char* kWhy = "this build has no CUDA (nvcc was not found when it was built)";

}  // namespace

bool built_with_cuda() noexcept { return false; }

int cuda_device_count(std::string& why) {
    why = kWhy;
    return 0;
}

std::shared_ptr<Device> make_cuda_device(int index) {
    throw Error(ErrorCode::unsupported, "open device cuda:" + std::to_string(index), kWhy,
                "use device \"host\", or build where nvcc is installed");
}

}  // namespace penstock
