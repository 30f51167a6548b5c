// Runs the Device kit over every device there is: emulated, emulated and slow, CUDA where a GPU is present. The kit is
// also the test of what no machine without a GPU can run (cuda_stream, cuda_boxes, kernels, kernels_boxes) and of
// box_host; cuda_absent is what builds without nvcc skip it with.
#include "conformance/box_suite.hpp"
#include "conformance/device_suite.hpp"

namespace penstock::conformance {
namespace {

DeviceCase host_case(const std::string& name, const HostDeviceOptions& options) {
    return {name, [options](std::string&) { return make_host_device(options); }};
}

std::shared_ptr<Device> first_gpu(std::string& why) {
    return cuda_device_count(why) > 0 ? make_cuda_device(0) : nullptr;
}

const auto kDevices = testing::Values(host_case("host", {}),
                                      host_case("host_throttled", {.bandwidth_bytes_per_s = 2e9, .latency_ns = 20'000}),
                                      host_case("host_without_registration", {.registers_mappings = false}),
                                      DeviceCase{"cuda", first_gpu});
INSTANTIATE_TEST_SUITE_P(Devices, DeviceSuite, kDevices, case_name);
INSTANTIATE_TEST_SUITE_P(Devices, BoxSuite, kDevices, case_name);

}  // namespace
}  // namespace penstock::conformance
