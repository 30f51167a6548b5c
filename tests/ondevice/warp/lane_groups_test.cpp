// Sets of lanes of one warp exchange words and never get those of another set: in the model of a warp on the host, and
// with the device's own lanes on the GPU that PENSTOCK_TEST_DEVICE names.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "ondevice/device_rig.hpp"
#include "ondevice/warp/lane_groups_rig.hpp"
#include "ondevice/warp/warp_rig.hpp"
#if defined(PENSTOCK_HAS_CUDA)
#include "ondevice/warp/lane_groups_kernels.hpp"
#endif

namespace penstock::ondevice {
namespace {

LaneGroupsTally in_the_model(const Warps::Options& options, u32 rounds, u32 spoilt = 0) {
    std::vector<u32> busy(options.warps);
    LaneGroupsTally tally{};
    const LaneGroupsPlan plan{options.warps, rounds, spoilt, busy.data(), &tally};
    Warps(options).run([&](u32 warp, u32) { LaneGroups<Warped>(plan, warp).run(); });
    return tally;
}

TEST(LaneGroups, in_the_model_of_a_warp_sets_stay_among_themselves) {
    constexpr u32 warps = 2, lanes = 6, rounds = 40;
    for (u64 seed = 1; seed <= 10; ++seed) {
        const LaneGroupsTally tally = in_the_model({warps, lanes, seed, seed % 2 == 0}, rounds);
        EXPECT_EQ(tally.exchanges, warps * lanes * rounds);
        EXPECT_GT(tally.company, 0u);
        EXPECT_EQ(tally.wrong, 0u) << "seed " << seed;
    }
}

TEST(LaneGroups, control_a_word_of_another_set_is_noticed) {
    EXPECT_GT(in_the_model({.warps = 1, .lanes = 4, .seed = 3}, 20, 10).wrong, 0u);
}

class LaneGroupsOnDevice : public testing::Test {
  protected:
    LaneGroupsTally run(u32 warps, u32 rounds, u32 spoilt = 0) {
        const LaneGroupsTally none{};
        const std::vector<u32> idle(warps);
        const OnDevice busy(*device_, idle.data(), warps * sizeof idle[0]), tally(*device_, &none, sizeof none);
        const LaneGroupsPlan plan{warps, rounds, spoilt, reinterpret_cast<u32*>(busy.data()),
                                  reinterpret_cast<LaneGroupsTally*>(tally.data())};
        start(plan);
        LaneGroupsTally found{};
        std::memcpy(&found, tally.bytes().data(), sizeof found);
        return found;
    }
    bool gpu() const { return !device_->info().emulated; }

  private:
    void start(const LaneGroupsPlan& plan) {
#if defined(PENSTOCK_HAS_CUDA)
        if (gpu()) {
            const auto error =
                run_kernel(*device_, [&](cudaStream_t stream) { return launch_lane_groups(plan, stream); });
            ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error);
            return;
        }
#endif
        run_threads(plan.warps, [&](u32 warp) { LaneGroups<Native>(plan, warp).run(); });
    }

    std::shared_ptr<Device> device_ = test_device();
};

TEST_F(LaneGroupsOnDevice, sets_stay_among_themselves) {
    const u32 warps = gpu() ? 512 : 4, lanes = gpu() ? 32 : 1, rounds = gpu() ? 500 : 200;
    const LaneGroupsTally tally = run(warps, rounds);
    EXPECT_EQ(tally.exchanges, warps * lanes * rounds);
    EXPECT_EQ(tally.company != 0, gpu());
    EXPECT_EQ(tally.wrong, 0u);
}

TEST_F(LaneGroupsOnDevice, control_a_word_of_another_set_is_noticed) { EXPECT_GT(run(2, 20, 10).wrong, 0u); }

}  // namespace
}  // namespace penstock::ondevice
