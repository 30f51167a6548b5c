// NVMe rings that device code drives, with the controller in this process. Device code runs on the GPU that
// PENSTOCK_TEST_DEVICE names, else on threads of the host. Queues and doorbells are in memory that both sides reach,
// slots in the device's.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "support/nvme/block_store.hpp"
#include "ondevice/device_rig.hpp"
#include "support/nvme/emulated_nvme.hpp"
#include "support/nvme/nvme_controller.hpp"
#include "ondevice/nvme/cache_client_rig.hpp"
#include "ondevice/nvme/ring_client_rig.hpp"
#include "penstock/error.hpp"
#if defined(PENSTOCK_HAS_CUDA)
#include "ondevice/nvme/ring_client_kernels.hpp"
#endif

namespace penstock::ondevice {
namespace {

constexpr u32 kCell = 4096;
constexpr u64 kBlocks = u64{1} << 20;  // the namespace's bytes

// A disk that gives back other bytes than were written.
class ForgetfulBlocks final : public MemoryBlocks {
  public:
    using MemoryBlocks::MemoryBlocks;
    bool read(u64 offset, u8* data, u64 bytes) override {
        if (!MemoryBlocks::read(offset, data, bytes)) return false;
        data[bytes / 2] ^= 0x10;
        return true;
    }
};

struct RingLoad {
    u32 rings = 1;
    u32 clients = 8;
    u32 rounds = 50;
    u32 depth = 8;
    u64 wait_ns = 30'000'000'000;
};

class NvmeOnDevice : public testing::Test {
  protected:
    // Runs all clients to their end, and returns their tally.
    RingTally run(const RingLoad& load, const EmulatedFaults& faults) {
        EmulatedNvmeOptions how;
        how.faults = faults;
        how.window = &shared_;
        EmulatedNvme emulated(*blocks_, [](u64 io, u64) { return reinterpret_cast<u8*>(io); }, how);
        NvmeController controller(emulated.registers(), shared_);
        const NvmeNamespace space = controller.open_namespace(1);
        std::vector<std::unique_ptr<NvmeRing>> rings;
        std::vector<NvmeRingRef<Native>> refs;
        for (u32 i = 0; i < load.rings; ++i) {
            const NvmeRingSizes sizes{.depth = load.depth, .slot_bytes = kCell};
            rings.push_back(std::make_unique<NvmeRing>(shared_, own_, sizes));
            controller.create_queues(*rings.back(), i + 1, space);
            refs.push_back(rings.back()->ref(0, load.clients > load.rings));
        }
        const OnDevice refs_there(*device_, refs.data(), refs.size() * sizeof(refs[0]));
        const RingTally none{};
        const OnDevice tally_there(*device_, &none, sizeof none);
        const RingPlan plan{reinterpret_cast<const NvmeRingRef<Native>*>(refs_there.data()), load.rings, load.clients,
                            load.rounds, kCell, load.wait_ns, reinterpret_cast<RingTally*>(tally_there.data())};
        start<RingClient>(plan);
        for (const auto& ring : rings) stray_ += ring->state().stray;
        for (u32 i = 0; i < load.rings; ++i) controller.delete_queues(i + 1);
        RingTally tally{};
        std::memcpy(&tally, tally_there.bytes().data(), sizeof tally);
        return tally;
    }

    // Runs each client as a warp of the GPU, or as a thread.
    template <class Client, class Plan>
    void start(const Plan& plan) {
#if defined(PENSTOCK_HAS_CUDA)
        if (!device_->info().emulated) {
            const auto error = run_kernel(*device_, [&](cudaStream_t stream) { return launch_clients(plan, stream); });
            ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error);
            return;
        }
#endif
        run_threads(plan.clients, [&](u32 client) { Client(plan, client).run(); });
    }

    static u32 all(const RingLoad& load) { return 2 * load.clients * load.rounds; }

    std::shared_ptr<Device> device_ = test_device();
    DeviceMemory shared_{*device_, MemoryKind::pinned};
    DeviceMemory own_{*device_, MemoryKind::device};
    std::unique_ptr<MemoryBlocks> blocks_ = std::make_unique<MemoryBlocks>(kBlocks);
    u64 stray_ = 0;
};

TEST_F(NvmeOnDevice, clients_of_one_ring_read_what_they_wrote_in_any_order_of_completion) {
    const RingLoad load{.clients = 16, .rounds = 100};
    const RingTally tally = run(load, {.hold_most = 5, .delay_percent = 5});
    EXPECT_EQ(tally.ok, all(load));
    EXPECT_EQ(tally.mismatches, 0u);
    EXPECT_EQ(stray_, 0u);
}

TEST_F(NvmeOnDevice, a_ring_for_each_client_takes_no_turns) {
    const RingLoad load{.rings = 8, .clients = 8, .rounds = 100, .depth = 2};
    const RingTally tally = run(load, {});
    EXPECT_EQ(tally.ok, all(load));
    EXPECT_EQ(tally.mismatches, 0u);
}

TEST_F(NvmeOnDevice, an_error_reaches_the_command_that_failed_and_no_other) {
    const RingLoad load{.rounds = 150};
    const RingTally tally = run(load, {.hold_most = 4, .fail_percent = 15});
    EXPECT_EQ(tally.ok + tally.errors, all(load));
    EXPECT_GT(tally.errors, all(load) / 20);
    EXPECT_EQ(tally.mismatches, 0u);
}

TEST_F(NvmeOnDevice, lost_completions_end_in_timeouts_and_harm_nobody) {
    const RingLoad load{.clients = 4, .rounds = 40, .depth = 16, .wait_ns = 40'000'000};
    const RingTally tally = run(load, {.hold_most = 3, .lose_percent = 3, .late_ns = 80'000'000});
    EXPECT_EQ(tally.ok + tally.errors + tally.timeouts + tally.refused, all(load));
    EXPECT_GT(tally.timeouts, 0u);
    EXPECT_GT(tally.ok, all(load) / 2);
    EXPECT_EQ(tally.mismatches, 0u);
    EXPECT_EQ(stray_, 0u);
}

// A page cache over the rings, in the device's own memory, and far smaller than the namespace.
class CacheOnNvmeOnDevice : public NvmeOnDevice {
  protected:
    static constexpr u64 kWords = kBlocks / sizeof(u64);

    struct Found {
        CacheClientTally tally{};
        u64 lost = 0;  // words of the namespace that are not what was stored last
    };
    Found use(const RingLoad& load, const EmulatedFaults& faults, u32 page_bytes) {
        fill();
        EmulatedNvmeOptions how;
        how.faults = faults;
        how.window = &shared_;
        EmulatedNvme emulated(*blocks_, [](u64 io, u64) { return reinterpret_cast<u8*>(io); }, how);
        NvmeController controller(emulated.registers(), shared_);
        std::vector<std::unique_ptr<NvmeRing>> rings;
        std::vector<NvmeRingRef<Native>> refs;
        for (u32 i = 0; i < load.rings; ++i) {
            rings.push_back(std::make_unique<NvmeRing>(shared_, own_, NvmeRingSizes{.depth = load.depth}));
            controller.create_queues(*rings.back(), i + 1, controller.open_namespace(1));
            refs.push_back(rings.back()->ref(0, true));
        }
        const OnDevice refs_there(*device_, refs.data(), refs.size() * sizeof(refs[0]));
        const CacheShape shape = shape_of(64, page_bytes);
        const StoreArray array{kBlocks, nullptr, 1};
        const std::vector<u8> zeros(std::max<u64>(kWords * sizeof(u32), load.clients * sizeof(CacheCounts)));
        const OnDevice states(*device_, shape.state_bytes()), pages(*device_, shape.data_bytes());
        const OnDevice array_there(*device_, &array, sizeof array);
        const OnDevice versions(*device_, zeros.data(), kWords * sizeof(u32));
        const OnDevice counts(*device_, zeros.data(), load.clients * sizeof(CacheCounts));
        const OnDevice tally(*device_, zeros.data(), sizeof(CacheClientTally));
        const auto* const first = reinterpret_cast<const NvmeRingRef<Native>*>(refs_there.data());
        CacheClientPlan plan{CacheClientWork::format,
                             shape,
                             states.data(),
                             pages.data(),
                             {first, load.rings, load.depth - 1, 0},
                             reinterpret_cast<const StoreArray*>(array_there.data()),
                             load.clients,
                             device_->info().emulated ? 1u : 32u,
                             witnessed_,
                             load.rounds,
                             load.wait_ns,
                             reinterpret_cast<u32*>(versions.data()),
                             reinterpret_cast<CacheCounts*>(counts.data()),
                             reinterpret_cast<CacheClientTally*>(tally.data())};
        for (const auto work : {CacheClientWork::format, CacheClientWork::use, CacheClientWork::flush}) {
            plan.work = work;
            start<CacheClient<>>(plan);
        }
        for (u32 i = 0; i < load.rings; ++i) controller.delete_queues(i + 1);
        Found found;
        std::memcpy(&found.tally, tally.bytes().data(), sizeof found.tally);
        found.lost = lost(versions.bytes());
        return found;
    }

    u32 witnessed_ = 0;

  private:
    void fill() {
        for (u64 index = 0; index < kWords; ++index) {
            const u64 word = cell_word(index, 0);
            blocks_->MemoryBlocks::write(index * sizeof word, reinterpret_cast<const u8*>(&word), sizeof word);
        }
    }
    u64 lost(const std::vector<unsigned char>& versions) {
        u64 lost = 0;
        for (u64 index = 0; index < kWords; ++index) {
            u64 word = 0;
            u32 version = 0;
            std::memcpy(&version, &versions[index * sizeof version], sizeof version);
            blocks_->MemoryBlocks::read(index * sizeof word, reinterpret_cast<u8*>(&word), sizeof word);
            lost += word != cell_word(index, version);
        }
        return lost;
    }
};

TEST_F(CacheOnNvmeOnDevice, every_word_is_what_its_owner_stored) {
    for (const u32 rings : {1u, 4u}) {
        const RingLoad load{.rings = rings, .clients = 8, .rounds = 150, .depth = 16};
        const Found found = use(load, {.hold_most = 5, .delay_percent = 2}, rings == 1 ? 512 : 4096);
        EXPECT_EQ(found.tally.wrong, 0u);
        EXPECT_EQ(found.tally.refused, 0u);
        EXPECT_EQ(found.lost, 0u);
        EXPECT_GT(found.tally.stores, found.tally.uses / 5);
    }
}

#if defined(PENSTOCK_HAS_CUDA)
TEST_F(CacheOnNvmeOnDevice, lanes_exchange_at_one_place_and_under_one_mask) {
    if (device_->info().emulated) GTEST_SKIP() << "a warp of the host is one lane, which exchanges nothing";
    witnessed_ = 1;
    const RingLoad load{.rings = 4, .clients = 8, .rounds = 100, .depth = 16};
    const Found found = use(load, {.hold_most = 5, .delay_percent = 2}, 4096);
    EXPECT_EQ(found.tally.uses, 32 * load.clients * load.rounds);
    Strayed seen{};
    ASSERT_EQ(take_strayed(seen), cudaSuccess);
    EXPECT_EQ(seen.times, 0u) << "first: line " << seen.line << " mask " << std::hex << seen.mask << ", of lane "
                              << seen.lane << "; line " << seen.others_line << " mask " << std::hex << seen.others_mask
                              << ", of lane " << std::dec << seen.other;
}

TEST_F(CacheOnNvmeOnDevice, control_lanes_at_lines_of_their_own_are_seen) {
    if (device_->info().emulated) GTEST_SKIP() << "a warp of the host is one lane, which exchanges nothing";
    ASSERT_EQ(run_kernel(*device_, launch_scattered_lines), cudaSuccess);
    Strayed seen{};
    ASSERT_EQ(take_strayed(seen), cudaSuccess);
    EXPECT_EQ(seen.times, 31u);
}
#endif

TEST_F(CacheOnNvmeOnDevice, late_completions_and_failures_lose_nothing) {
    const RingLoad load{.rings = 2, .clients = 6, .rounds = 60, .depth = 16, .wait_ns = 400'000'000};
    const Found found = use(load, {.fail_percent = 1, .lose_percent = 1, .late_ns = 50'000'000}, 4096);
    EXPECT_EQ(found.tally.wrong, 0u);
    EXPECT_EQ(found.lost, 0u);
    EXPECT_GT(found.tally.uses, found.tally.refused);
}

TEST_F(CacheOnNvmeOnDevice, control_wrong_bytes_are_noticed) {
    blocks_ = std::make_unique<ForgetfulBlocks>(kBlocks);
    const Found found = use({.clients = 4, .rounds = 300}, {}, 512);
    EXPECT_GT(found.tally.wrong, 0u);
}

TEST_F(NvmeOnDevice, control_wrong_bytes_are_noticed) {
    blocks_ = std::make_unique<ForgetfulBlocks>(kBlocks);
    EXPECT_GT(run({.rounds = 5}, {}).mismatches, 0u);
}

}  // namespace
}  // namespace penstock::ondevice
