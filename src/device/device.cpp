// Parses device names as users type them: "auto", "host", "cuda:N". Also what devices without streams for others do.
#include "penstock/device.hpp"

#include <charconv>
#include <string>

namespace penstock {
namespace {

Error unknown_name(const std::string& name) {
    return Error(ErrorCode::invalid_argument, "open device", "no device is named '" + name + "'",
                 "use auto, host, cuda or cuda:N (N from 0)");
}

}  // namespace

void Device::synchronize_native(std::uintptr_t stream) {
    if (stream == 0) return;
    throw Error(ErrorCode::invalid_argument, "synchronize a stream",
                std::to_string(stream) + " is no stream of the device " + name(),
                "pass 0, or use a context of the GPU that the stream belongs to");
}

std::shared_ptr<Device> make_device(const std::string& name) {
    if (name == "host") return make_host_device();
    if (name == "cuda") return make_cuda_device(0);
    if (name == "auto") {
        std::string why;
        return cuda_device_count(why) > 0 ? make_cuda_device(0) : make_host_device();
    }
    const std::string prefix = "cuda:";
    if (name.rfind(prefix, 0) != 0) throw unknown_name(name);
    int index = -1;
    const char* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + prefix.size(), end, index);
    if (error != std::errc{} || stop != end || index < 0) throw unknown_name(name);
    return make_cuda_device(index);
}

}  // namespace penstock
