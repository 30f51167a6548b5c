// Calls from the device that PENSTOCK_TEST_DEVICE names: lanes get their own answers, lines of a log are whole, and the
// round trip of one lane takes what it may on a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <sstream>

#include "ondevice/calls/calls_rig.hpp"
#include "ondevice/calls/work_rig.hpp"
#include "ondevice/device_rig.hpp"
#if defined(PENSTOCK_HAS_CUDA)
#include "ondevice/calls/work_kernels.hpp"
#endif

namespace penstock::ondevice {
namespace {

constexpr double kMostUs = 8;  // of the median round trip of one lane of a GPU

class CallsOnDevice : public testing::Test {
  protected:
    CallsOnDevice() {
        function_ = service_.functions().add("one more", [](const HostCall& call) {
            u32 number = 0;
            std::memcpy(&number, call.argument.data(), sizeof number);
            number += 1;
            std::memcpy(call.answer.data(), &number, sizeof number);
            return HostAnswer{static_cast<std::int64_t>(call.value * 2), sizeof number};
        });
    }
    bool gpu() const { return !device_->info().emulated; }

    struct Found {
        CallsTally tally{};
        std::vector<u64> cycles;
    };
    Found run(u32 warps, u32 lanes, u32 rounds, const char* log) {
        CallsRef ref{};
        ref.channel = mailbox_.answering_ref();
        ref.timeout_ns = kLongCallNs;
        const CallsTally none{};
        const OnDevice calls(*device_, &ref, sizeof ref), tally(*device_, &none, sizeof none);
        const OnDevice cycles(*device_, rounds * sizeof(u64));
        const std::string text = log == nullptr ? "" : log;
        const OnDevice name(*device_, text.c_str(), text.size() + 1);
        start({reinterpret_cast<const CallsRef*>(calls.data()), function_, warps, kWholeWarp >> (32 - lanes), rounds,
               log == nullptr ? nullptr : reinterpret_cast<const char*>(name.data()),
               reinterpret_cast<u64*>(cycles.data()), reinterpret_cast<CallsTally*>(tally.data())},
              lanes);
        Found found{{}, std::vector<u64>(rounds)};
        std::memcpy(&found.tally, tally.bytes().data(), sizeof found.tally);
        std::memcpy(found.cycles.data(), cycles.bytes().data(), rounds * sizeof(u64));
        return found;
    }
    CallService& service() { return service_; }

  private:
    void start(const CallsPlan& plan, [[maybe_unused]] u32 lanes) {
#if defined(PENSTOCK_HAS_CUDA)
        if (gpu()) {
            const auto error =
                run_kernel(*device_, [&](cudaStream_t stream) { return launch_calls(plan, lanes, stream); });
            ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error);
            return;
        }
#endif
        run_threads(plan.warps, [&](u32 warp) { CallsWork(plan, warp).run(); });
    }

    std::shared_ptr<Device> device_ = test_device();
    DeviceMemory pinned_{*device_, MemoryKind::pinned}, own_{*device_, MemoryKind::device};
    Mailbox mailbox_{pinned_, own_, {256, 8192, true}};
    CallService service_{mailbox_, {}};
    u32 function_ = 0;
};

TEST_F(CallsOnDevice, lanes_get_their_own_answers_and_their_lines_are_whole) {
    const CallFolder folder;
    const std::string name = folder / "log";
    const u32 warps = gpu() ? 64 : 3, lanes = gpu() ? 32 : 1, rounds = gpu() ? 50 : 20;
    const Found found = run(warps, lanes, rounds, name.c_str());
    EXPECT_EQ(found.tally.wrong, 0u);
    EXPECT_EQ(found.tally.ok, 2 * warps * lanes * rounds);
    std::istringstream text(text_of(name));
    std::set<std::string> lines;
    for (std::string line; std::getline(text, line);) EXPECT_TRUE(lines.insert(line).second) << line;
    EXPECT_EQ(lines.size(), warps * lanes * rounds);
    EXPECT_LT(service().calls(), (gpu() ? 1.5 : 3.0) * warps * lanes * rounds) << "lanes append together";
}

TEST_F(CallsOnDevice, the_round_trip_of_one_lane_is_short_on_a_gpu) {
    Found found = run(1, 1, gpu() ? 5000 : 200, nullptr);
    ASSERT_EQ(found.tally.wrong, 0u);
    const double all = static_cast<double>(std::accumulate(found.cycles.begin(), found.cycles.end(), u64{0}));
    std::sort(found.cycles.begin(), found.cycles.end());
    const double us_a_cycle = static_cast<double>(found.tally.ns) / 1000 / all;
    const double median = static_cast<double>(found.cycles[found.cycles.size() / 2]) * us_a_cycle;
    const double high = static_cast<double>(found.cycles[found.cycles.size() * 99 / 100]) * us_a_cycle;
    printf("             a call: median %.2f us, 99 of 100 within %.2f us (%s)\n", median, high,
           gpu() ? "one lane of a GPU" : "a thread of the host");
    EXPECT_LE(median, gpu() ? kMostUs : 1e6);
}

}  // namespace
}  // namespace penstock::ondevice
