// Staging memory: blocks never overlap, what is registered stays within the budget, and is used again.
#include "engine/slots/staging.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "device/forwarding_device.hpp"
#include "penstock/error.hpp"
#include "penstock/plan.hpp"

namespace penstock::engine {
namespace {

// The emulated device, which registers no more than some bytes at once.
class SmallRegistrations : public device::test::ForwardingDevice {
  public:
    explicit SmallRegistrations(std::uint64_t most) : most_(most) {}
    bool register_host(void* memory, std::uint64_t bytes, bool read_only, std::string& why) override {
        why = "too much at once";
        return bytes <= most_ && ForwardingDevice::register_host(memory, bytes, read_only, why);
    }

  private:
    std::uint64_t most_;
};

class StagingMemory : public testing::Test {
  protected:
    std::shared_ptr<Device> device_ = make_host_device();
    bool registered(const std::byte* memory) const { return device_->pointer_info(memory).known; }
};

TEST_F(StagingMemory, a_block_that_came_back_is_given_to_whoever_it_fits) {
    Staging staging(*device_, -1, 64 * kMiB);
    const auto large = staging.take(12 * kMiB);
    ASSERT_EQ(large.size(), 12 * kMiB);
    EXPECT_TRUE(registered(large.data()));
    staging.give(large);
    const auto first = staging.take(4 * kMiB);
    const auto second = staging.take(8 * kMiB);
    EXPECT_EQ(first.data(), large.data());
    EXPECT_EQ(second.data(), large.data() + 4 * kMiB);
    EXPECT_EQ(staging.registered_bytes(), 12 * kMiB);
}

TEST_F(StagingMemory, neighbours_that_came_back_are_one_place_again) {
    Staging staging(*device_, -1, 12 * kMiB);
    staging.give(staging.take(12 * kMiB));
    std::vector<std::span<std::byte>> blocks;
    for (int i = 0; i < 6; ++i) blocks.push_back(staging.take(2 * kMiB));
    EXPECT_TRUE(staging.take(2 * kMiB).empty());
    for (const int i : {1, 4, 3, 0, 5, 2}) staging.give(blocks[static_cast<std::size_t>(i)]);
    EXPECT_EQ(staging.take(12 * kMiB).size(), 12 * kMiB);
    EXPECT_EQ(staging.peak_bytes(), 12 * kMiB);
}

TEST_F(StagingMemory, what_nobody_uses_makes_way_for_what_does_not_fit_in_it) {
    Staging staging(*device_, -1, 16 * kMiB);
    const auto kept = staging.take(4 * kMiB);
    staging.give(staging.take(8 * kMiB));
    EXPECT_TRUE(staging.take(14 * kMiB).empty());  // 4 MiB are in use
    EXPECT_EQ(staging.registered_bytes(), 12 * kMiB);
    EXPECT_EQ(staging.take(12 * kMiB).size(), 12 * kMiB);
    EXPECT_EQ(staging.registered_bytes(), 16 * kMiB);
    EXPECT_TRUE(registered(kept.data()));
    EXPECT_EQ(staging.peak_bytes(), 16 * kMiB);
}

TEST_F(StagingMemory, no_more_makes_way_than_has_to) {
    Staging staging(*device_, -1, 24 * kMiB);
    std::vector<std::span<std::byte>> blocks;
    for (int i = 0; i < 3; ++i) blocks.push_back(staging.take(8 * kMiB));
    for (const auto& block : blocks) staging.give(block);
    EXPECT_EQ(staging.take(10 * kMiB).size(), 10 * kMiB);
    EXPECT_EQ(staging.registered_bytes(), 18 * kMiB);
    EXPECT_EQ(staging.peak_bytes(), 24 * kMiB);
}

TEST_F(StagingMemory, small_blocks_leave_the_large_slab_whole) {
    Staging staging(*device_, -1, 128 * kMiB);
    const auto large = staging.take(96 * kMiB);
    std::vector<std::span<std::byte>> kept;
    for (int i = 0; i < 4; ++i) kept.push_back(staging.take(2 * kMiB));
    staging.give(large);
    for (int i = 0; i < 4; ++i) kept.push_back(staging.take(2 * kMiB));
    EXPECT_EQ(staging.take(96 * kMiB).data(), large.data());
}

TEST_F(StagingMemory, spare_bytes_are_done_without_where_the_system_refuses_them) {
    const auto device = std::make_shared<SmallRegistrations>(4 * kMiB);
    Staging staging(*device, -1, 64 * kMiB);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(staging.take(2 * kMiB).size(), 2 * kMiB);
    EXPECT_EQ(staging.registered_bytes(), 8 * kMiB);
    EXPECT_EQ(staging.take(4 * kMiB).size(), 4 * kMiB);  // 8 would be taken, if they were given
    EXPECT_EQ(staging.registered_bytes(), 12 * kMiB);
    EXPECT_THROW(staging.take(6 * kMiB), Error);
    EXPECT_EQ(staging.registered_bytes(), 12 * kMiB);
}

TEST_F(StagingMemory, small_blocks_share_what_is_registered_at_once) {
    Staging staging(*device_, -1, 256 * kMiB);
    EXPECT_EQ(staging.take(2 * kMiB).size(), 2 * kMiB);
    EXPECT_EQ(staging.registered_bytes(), 2 * kMiB);  // a first small request does not pay for later ones
    for (int i = 0; i < 31; ++i) EXPECT_EQ(staging.take(2 * kMiB).size(), 2 * kMiB);
    EXPECT_EQ(staging.registered_bytes(), 64 * kMiB);
}

TEST_F(StagingMemory, memory_that_may_still_be_written_to_is_not_used_again) {
    Staging staging(*device_, -1, 16 * kMiB);
    staging.give(staging.take(8 * kMiB));
    const auto doubtful = staging.take(2 * kMiB);
    const auto fine = staging.take(2 * kMiB);
    EXPECT_EQ(fine.data(), doubtful.data() + 2 * kMiB);
    staging.retire(doubtful);
    const auto other = staging.take(2 * kMiB);
    EXPECT_TRUE(other.data() >= doubtful.data() + 8 * kMiB || other.data() + 2 * kMiB <= doubtful.data());
    EXPECT_TRUE(registered(fine.data()));
    staging.give(fine);
    EXPECT_FALSE(registered(doubtful.data()));
}

TEST_F(StagingMemory, blocks_of_any_order_and_size_never_overlap) {
    constexpr std::uint64_t kBudget = 40 * kMiB;
    Staging staging(*device_, -1, kBudget);
    std::mt19937 random(7);
    std::vector<std::span<std::byte>> held;
    int refused = 0;
    for (int i = 0; i < 3000; ++i) {
        if (!held.empty() && random() % 2 == 0) {
            const std::size_t one = random() % held.size();
            random() % 16 == 0 ? staging.retire(held[one]) : staging.give(held[one]);
            held.erase(held.begin() + static_cast<std::ptrdiff_t>(one));
            continue;
        }
        const auto block = staging.take((1 + random() % 5) * kStagingStep);
        if (block.empty()) ++refused;
        for (const auto& other : held) {
            ASSERT_TRUE(block.empty() || block.data() >= other.data() + other.size() ||
                        other.data() >= block.data() + block.size());
        }
        if (!block.empty()) held.push_back(block);
        ASSERT_LE(staging.registered_bytes(), kBudget);
    }
    EXPECT_GT(refused, 0);
    for (const auto& block : held) staging.give(block);
    EXPECT_EQ(staging.take(kBudget).size(), kBudget);
    EXPECT_EQ(staging.peak_bytes(), kBudget);
}

TEST_F(StagingMemory, many_threads_take_and_give) {
    Staging staging(*device_, -1, 24 * kMiB);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t) {
        threads.emplace_back([&staging, t] {
            for (unsigned i = 0; i < 200; ++i) {
                const auto block = staging.take((1 + (t + i) % 4) * kStagingStep);
                if (block.empty()) continue;
                std::fill(block.begin(), block.begin() + 4096, static_cast<std::byte>(t));
                const bool mine = std::all_of(block.begin(), block.begin() + 4096,
                                              [t](std::byte b) { return b == static_cast<std::byte>(t); });
                EXPECT_TRUE(mine);
                staging.give(block);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_LE(staging.peak_bytes(), 24 * kMiB);
    EXPECT_EQ(staging.take(24 * kMiB).size(), 24 * kMiB);
}

TEST_F(StagingMemory, workers_that_start_together_register_no_more_than_one_after_the_other) {
    Staging staging(*device_, -1, 256 * kMiB);
    std::vector<std::thread> threads;
    std::atomic<int> ready{0};
    for (int t = 0; t < 8; ++t) {
        threads.emplace_back([&] {
            for (++ready; ready < 8;) std::this_thread::yield();
            EXPECT_FALSE(staging.take(2 * kMiB).empty());
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(staging.registered_bytes(), 16 * kMiB);
}

}  // namespace
}  // namespace penstock::engine
