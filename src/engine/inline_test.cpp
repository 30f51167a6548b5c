// Reads through lanes when something fails in the middle: the lane is there for the next caller, and its slot free.
#include "engine/inline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "device/forwarding_device.hpp"

namespace penstock::engine {
namespace {

constexpr std::uint64_t kWhole = 2 * kMiB;

// Has no memory for events. Its copies take a while, in which the slot must not be filled again.
class Exhausted final : public device::test::ForwardingDevice {
  public:
    Exhausted() : ForwardingDevice({.bandwidth_bytes_per_s = 1e9, .latency_ns = 20'000'000}) {}
    std::unique_ptr<Event> make_event() override { throw std::bad_alloc(); }
};

TEST(InlineLanes, without_memory_a_read_fails_and_leaves_the_lane_to_the_next) {
    Exhausted device;
    InlineLanes lanes(device, os::real_system(), InlineLanes::kLargeSlotBytes, 1);
    auto* const memory = static_cast<std::byte*>(device.allocate(MemoryKind::device, kWhole));
    std::fill_n(memory, kWhole, std::byte{0xee});
    const auto ones = [](std::span<std::byte> half, std::uint64_t) {
        std::fill(half.begin(), half.end(), std::byte{1});
        return true;
    };
    EXPECT_FALSE(lanes.read_by_halves({memory, kWhole}, ones));
    EXPECT_EQ(memory[0], std::byte{1}) << "no copy goes on";
    EXPECT_TRUE(lanes.fill(2)) << "the lane came back";
    EXPECT_TRUE(lanes.read_by_halves({memory + kMiB, 512 * kKiB}, ones)) << "two halves need no event";
    EXPECT_EQ(std::count(memory, memory + kWhole, std::byte{1}), (256 + 512) * kKiB);
    device.release(MemoryKind::device, memory);
}

}  // namespace
}  // namespace penstock::engine
