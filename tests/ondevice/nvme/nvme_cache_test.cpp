// The page cache over NVMe queues and the controller in this process: the same cache and store as over files, with
// another channel. Threads of the host use it at random, each with an oracle of its own, even while commands fail or
// end out of order, late or never.
#include <gtest/gtest.h>

#include <memory>

#include "ondevice/cache/cache_users_rig.hpp"
#include "ondevice/channel/channel_kit_rig.hpp"
#include "ondevice/channel/memory_rig.hpp"
#include "ondevice/nvme/nvme_rings.hpp"
#include "penstock/ondevice/file_store.hpp"
#include "support/nvme/block_store.hpp"
#include "support/nvme/emulated_nvme.hpp"
#include "support/nvme/nvme_controller.hpp"

namespace penstock::ondevice {
namespace {

constexpr u64 kBytes = 64 * 1024;

using Store = FileStore<Native, NvmeRingsRef<Native>>;

// A disk that reports the first page as written and never writes it.
class Careless final : public MemoryBlocks {
  public:
    using MemoryBlocks::MemoryBlocks;
    bool write(u64 offset, const u8* data, u64 bytes) override {
        return offset == 0 || MemoryBlocks::write(offset, data, bytes);
    }
};

struct Rings {
    u32 count = 1;
    u32 depth = 16;
};

class CacheOverNvme : public testing::Test {
  protected:
    // How many words are lost. `plan` says which statuses the users may get.
    u64 use(const UsersPlan& plan, const EmulatedFaults& faults, const Rings& how = {}) {
        const std::vector<u8> start = users_file(0, kBytes);
        EXPECT_TRUE(blocks_->MemoryBlocks::write(0, start.data(), kBytes));
        EmulatedNvmeOptions options;
        options.faults = faults;
        EmulatedNvme emulated(*blocks_, memory_.translator(), options);
        NvmeController controller(emulated.registers(), memory_);
        const NvmeNamespace space = controller.open_namespace(1);
        std::vector<std::unique_ptr<NvmeRing>> rings;
        std::vector<NvmeRingRef<Native>> refs;
        for (u32 i = 0; i < how.count; ++i) {
            rings.push_back(std::make_unique<NvmeRing>(memory_, NvmeRingSizes{.depth = how.depth}));
            controller.create_queues(*rings.back(), i + 1, space);
            refs.push_back(rings.back()->ref(0, true));
        }
        const StoreArray array{kBytes, nullptr, 1};
        const auto store = [&](u32 user) {
            return Store{{refs.data(), how.count, how.depth - 1, user}, &array, 1, plan.page_bytes};
        };
        CacheRig<SweepResistant, Native, Store> rig(shape_of(32, plan.page_bytes), store(0), plan.users + 1);
        Users users(plan);
        users.run([&](u32 user) {
            auto cache = rig.cache(user);
            cache.store() = store(user);
            return cache;
        });
        wrong_ = users.wrong;
        expected_ = users.expected;
        EXPECT_EQ(users.refused, 0u) << "status " << static_cast<int>(users.first_refused);
        auto last = rig.cache(plan.users);
        Status status = Status::busy;
        for (int again = 0; status != Status::ok && again < 100; ++again) status = last.flush(soon());
        EXPECT_EQ(status, Status::ok);
        EXPECT_EQ(rig.references(), 0u);
        for (u32 i = 0; i < how.count; ++i) {
            EXPECT_EQ(rings[i]->state().stray, 0u);
            late_ += rings[i]->state().late;
            controller.delete_queues(i + 1);
        }
        std::vector<u8> end(kBytes);
        EXPECT_TRUE(blocks_->read(0, end.data(), kBytes));
        return users.lost(0, end);
    }

    static UsersPlan plan(std::set<Status> expects = {}) {
        return {.files = {kBytes}, .users = 4, .turns = 1500, .expects = std::move(expects)};
    }

    RigMemory memory_;
    std::unique_ptr<MemoryBlocks> blocks_ = std::make_unique<MemoryBlocks>(kBytes);
    u32 wrong_ = 0, expected_ = 0;
    u64 late_ = 0;
};

TEST_F(CacheOverNvme, every_word_is_what_its_owner_stored_in_any_order_of_completion) {
    EXPECT_EQ(use(plan(), {.hold_most = 5, .delay_percent = 3}), 0u);
    EXPECT_EQ(wrong_, 0u);
}

TEST_F(CacheOverNvme, several_rings_serve_one_cache) {
    EXPECT_EQ(use(plan(), {.hold_most = 3}, {.count = 4, .depth = 8}), 0u);
    EXPECT_EQ(wrong_, 0u);
}

TEST_F(CacheOverNvme, pages_of_many_blocks_come_by_lists_of_addresses) {
    UsersPlan large = plan();
    large.page_bytes = 4096;
    large.turns = 500;
    EXPECT_EQ(use(large, {}), 0u);
    EXPECT_EQ(wrong_, 0u);
}

TEST_F(CacheOverNvme, commands_that_fail_are_told_and_nothing_is_lost) {
    EXPECT_EQ(use(plan({Status::io_error}), {.hold_most = 3, .fail_percent = 2}), 0u);
    EXPECT_EQ(wrong_, 0u);
    EXPECT_GT(expected_, 0u);
}

TEST_F(CacheOverNvme, late_completions_land_in_no_other_page) {
    UsersPlan hasty = plan({Status::timed_out});
    hasty.turns = 800;
    hasty.wait_ms = 20;
    EXPECT_EQ(use(hasty, {.lose_percent = 4, .late_ns = 40'000'000}), 0u);
    EXPECT_EQ(wrong_, 0u);
    EXPECT_GT(late_, 0u) << "of write-backs; a caller that gives up a load leaves it to the next";
}

// Raw requests, more under way than a ring has slots. The controller answers out of order, late, or never.
TEST_F(CacheOverNvme, clients_of_several_rings_as_one_channel_read_what_they_wrote) {
    EmulatedNvmeOptions options;
    options.faults = {.hold_most = 3, .fail_percent = 2, .delay_percent = 5, .lose_percent = 1, .late_ns = 30'000'000};
    MemoryBlocks blocks(u64{1} << 20);
    EmulatedNvme emulated(blocks, memory_.translator(), options);
    NvmeController controller(emulated.registers(), memory_);
    std::vector<std::unique_ptr<NvmeRing>> rings;
    std::vector<NvmeRingRef<Native>> refs;
    for (u32 i = 0; i < 3; ++i) {
        rings.push_back(std::make_unique<NvmeRing>(memory_, NvmeRingSizes{.depth = 4}));
        controller.create_queues(*rings.back(), i + 1, controller.open_namespace(1));
        refs.push_back(rings.back()->ref(0, true));
    }
    struct {
        const std::vector<NvmeRingRef<Native>>& refs;
        NvmeRingsRef<Native> channel(u32 client) { return {refs.data(), 3, 3, client}; }
    } rig{refs};
    kit::ClientPlan plan{.requests = 500, .outstanding = 4, .cell_bytes = 1024};
    plan.deadline_ns = 20'000'000;
    const kit::Tally tally = kit::run_clients(rig, {.clients = 4, .plan = plan});
    EXPECT_EQ(tally.mismatches + tally.surprises, 0u);
    EXPECT_EQ(tally.ok + tally.errors + tally.timeouts, 2000u);
    EXPECT_GT(tally.ok, 0u);
    EXPECT_GT(tally.timeouts, 0u);
    const NvmeRingsRef<Native> channel = rig.channel(1);
    const u64 end = kit::far();
    std::vector<u32> tickets(channel.depth());
    for (u32& ticket : tickets) {
        while (channel.claim(ticket) == Status::busy && Native::now_ns() < end) Native::pause(0);
        EXPECT_EQ(channel.test(ticket), Status::invalid) << "it was not sent";
    }
    EXPECT_EQ(std::set<u32>(tickets.begin(), tickets.end()).size(), 9u);
    for (const auto& ring : rings) EXPECT_GT(ring->state().submitted, 0u) << "each is the first of some page";
}

TEST_F(CacheOverNvme, control_writes_that_did_not_happen_are_noticed) {
    blocks_ = std::make_unique<Careless>(kBytes);
    const u64 lost = use(plan(), {});
    EXPECT_GT(lost + wrong_, 0u);
}

}  // namespace
}  // namespace penstock::ondevice
