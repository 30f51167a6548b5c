// Runs the Device kit on every device there is: the emulated one, a slow emulated one, and CUDA if there is a GPU. Only
// the kit tests what needs a GPU (cuda_stream, cuda_boxes, kernels, kernels_boxes, packs, pack_kernels, sorts,
// sort_kernels), box_host, pack_host, sort_host, sort_stream and cell_plan. In builds without nvcc, cuda_absent gives
// the reason for skipping.
#include "conformance/box_suite.hpp"
#include "conformance/cell_suite.hpp"
#include "conformance/device_suite.hpp"
#include "conformance/pack_suite.hpp"

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
INSTANTIATE_TEST_SUITE_P(Devices, PackSuite, kDevices, case_name);
INSTANTIATE_TEST_SUITE_P(Devices, CellSuite, kDevices, case_name);

}  // namespace
}  // namespace penstock::conformance
