// The NVMe ring passes the channels' kit. Its entries are the specification's to the last dword. It counts what a
// controller does against the rules, and takes no harm from it.
#include "ondevice/nvme/nvme_ring.hpp"

#include <gtest/gtest.h>

#include <set>

#include "ondevice/channel/channel_kit_rig.hpp"
#include "ondevice/channel/memory_rig.hpp"
#include "ondevice/nvme/target_rig.hpp"
#include "penstock/error.hpp"

namespace penstock::ondevice {
namespace {

constexpr u32 block = 512;

struct RingParts {
    RigMemory memory;
    u32 submission_doorbell = 0;
    u32 completion_doorbell = 0;
    NvmeRing ring;

    explicit RingParts(const NvmeRingSizes& sizes, u64 bytes = u64{1} << 20) : ring(memory, sizes) {
        ring.attach(&submission_doorbell, &completion_doorbell, {1, 9, bytes / block});
    }
    NvmeTarget<Native> target() {
        return {reinterpret_cast<NvmeCommand*>(memory.translate(ring.submission_io(), 64)),
                reinterpret_cast<NvmeCompletion*>(memory.translate(ring.completion_io(), 16)),
                &submission_doorbell,
                &completion_doorbell,
                ring.depth()};
    }
};

class RingRig {
  public:
    explicit RingRig(const kit::Setup& setup)
        : parts_({.depth = setup.slots + 1, .slot_bytes = setup.slot_bytes}, setup.storage_bytes),
          bytes_(setup.storage_bytes),
          backlog_(bytes_, setup.faults),
          thread_([this] { serve(); }) {}
    ~RingRig() { stop(); }

    NvmeRingRef<Native> channel(u32 client) { return parts_.ring.ref(client * 3, true); }
    void hold(bool hold) { hold_ = hold; }
    kit::Counts stop() {
        stop_ = true;
        if (thread_.joinable()) thread_.join();
        kit::Counts counts;
        counts += backlog_;
        counts.stray = parts_.ring.state().stray;
        return counts;
    }

  private:
    void serve() {
        NvmeTarget<Native> target = parts_.target();
        while (!stop_) {
            if (hold_) {
                Native::pause(0);
                continue;
            }
            NvmeCommand command{};
            const bool came = target.take(command);
            if (came) backlog_.add(work_of(command));
            const auto work = backlog_.take(!came);
            while (work && !target.complete(work->slot, work->fail ? 0x281 : 0) && !stop_) Native::pause(0);
            if (!came && !work) Native::pause(0);
        }
    }

    kit::Work work_of(const NvmeCommand& command) {
        const Request request = request_of(command, block);
        const u64 prp1 = u64{command.dword[7]} << 32 | command.dword[6];
        const u64 prp2 = u64{command.dword[9]} << 32 | command.dword[8];
        kit::Work work{command.dword[0] >> 16, request, {}, 0, false};
        if (request.bytes != 0) {
            work.spans = prp_spans({prp1, prp2, request.bytes, RigMemory::page}, parts_.memory.translator());
            EXPECT_FALSE(work.spans.empty()) << "a wrong address";
        }
        return work;
    }

    RingParts parts_;
    kit::Bytes bytes_;
    kit::Backlog backlog_;
    std::atomic<bool> stop_{false};
    std::atomic<bool> hold_{false};
    std::thread thread_;
};

}  // namespace

namespace kit {
INSTANTIATE_TYPED_TEST_SUITE_P(NvmeRing, ChannelKit, RingRig);
}  // namespace kit

namespace {

TEST(NvmeEntry, a_read_is_the_specifications_64_bytes_and_nothing_is_left_over) {
    RingParts parts({.depth = 4, .slot_bytes = 16384});
    NvmeTarget<Native> target = parts.target();
    std::memset(target.submission, 0xee, 4 * sizeof(NvmeCommand));
    u32 ticket = 0;
    ASSERT_EQ(parts.ring.ref(1).submit({3 * block, 0, 12288, 0, RequestOperation::read, 0}, ticket), Status::ok);
    EXPECT_EQ(parts.submission_doorbell, 1u);
    NvmeCommand command{};
    ASSERT_TRUE(target.take(command));
    const u32* const dword = command.dword;
    EXPECT_EQ(dword[0], 0x02u | 1u << 16);
    EXPECT_EQ(dword[1], 1u);
    for (const int unused : {2, 3, 4, 5, 13, 14, 15}) EXPECT_EQ(dword[unused], 0u) << unused;
    EXPECT_EQ(dword[10], 3u);
    EXPECT_EQ(dword[11], 0u);
    EXPECT_EQ(dword[12], 12288u / block - 1);
    const u64 prp1 = u64{dword[7]} << 32 | dword[6];
    const u64 list = u64{dword[9]} << 32 | dword[8];
    EXPECT_EQ(parts.memory.translate(prp1, 4096), parts.ring.ref().slot_data(ticket));
    const auto* const entries = reinterpret_cast<const u64*>(parts.memory.translate(list, 16));
    ASSERT_NE(entries, nullptr);
    EXPECT_EQ(entries[0], prp1 + 4096);
    EXPECT_EQ(entries[1], prp1 + 8192);
}

TEST(NvmeEntry, flush_and_write_and_the_high_dwords) {
    const NvmeCommand flush = nvme_command({NvmeOpcode::flush, 7, 3, 99, 5, {1, 2}});
    EXPECT_EQ(flush.dword[0], 7u << 16);
    EXPECT_EQ(flush.dword[1], 3u);
    for (int dword = 2; dword < 16; ++dword) EXPECT_EQ(flush.dword[dword], 0u) << dword;
    const u64 far = 0x0123456789abcdef;
    const NvmeCommand write = nvme_command({NvmeOpcode::write, 1, 3, far, 65536, {far + 1, far + 2}});
    EXPECT_EQ(write.dword[0], 0x01u | 1u << 16);
    EXPECT_EQ(write.dword[6], 0x89abcdf0u);
    EXPECT_EQ(write.dword[7], 0x01234567u);
    EXPECT_EQ(write.dword[8], 0x89abcdf1u);
    EXPECT_EQ(write.dword[9], 0x01234567u);
    EXPECT_EQ(write.dword[10], 0x89abcdefu);
    EXPECT_EQ(write.dword[11], 0x01234567u);
    EXPECT_EQ(write.dword[12], 0xffffu);
}

TEST(NvmeEntry, statuses_are_mapped) {
    const auto status = [](u32 type, u32 code) { return nvme_status(1u << 16 | 5 | code << 17 | type << 25); };
    EXPECT_EQ(status(0, 0), Status::ok);
    EXPECT_EQ(status(0, 0x02), Status::invalid);
    EXPECT_EQ(status(0, 0x08), Status::cancelled);
    EXPECT_EQ(status(0, 0x20), Status::read_only);
    EXPECT_EQ(status(0, 0x80), Status::out_of_range);
    EXPECT_EQ(status(0, 0x06), Status::io_error);
    EXPECT_EQ(status(1, 0x82), Status::read_only);
    EXPECT_EQ(status(2, 0x81), Status::io_error);
    EXPECT_EQ(status(7, 0), Status::io_error) << "a vendor's type with code 0 is no success";
}

TEST(NvmeRingTest, ranges_are_checked_before_anything_is_sent) {
    RingParts parts({.depth = 4}, 4096);
    const auto send = [&](u64 offset, u32 bytes, u64 memory = 0, u16 file = 0) {
        u32 ticket = 0;
        return parts.ring.ref().submit({offset, memory, bytes, file, RequestOperation::read, 0}, ticket);
    };
    EXPECT_EQ(send(100, 512), Status::invalid);
    EXPECT_EQ(send(0, 100), Status::invalid);
    EXPECT_EQ(send(0, 0), Status::invalid);
    EXPECT_EQ(send(0, 512, 0, 1), Status::invalid);
    EXPECT_EQ(send(0, 512, 4097), Status::invalid);
    EXPECT_EQ(send(4096, 512), Status::out_of_range);
    EXPECT_EQ(send(3584, 1024), Status::out_of_range);
    EXPECT_EQ(send(~u64{0} << 9, 1024), Status::out_of_range);
    EXPECT_EQ(parts.submission_doorbell, 0u);
    for (int fits = 0; fits < 3; ++fits) EXPECT_EQ(send(3584, 512), Status::ok);
    EXPECT_EQ(send(3584, 512), Status::busy);
}

TEST(NvmeRingTest, memory_of_the_callers_own_is_one_page_or_two) {
    RingParts parts({.depth = 8, .slot_bytes = 16384});
    NvmeTarget<Native> target = parts.target();
    u32 ticket = 0;
    NvmeCommand command{};
    ASSERT_EQ(parts.ring.ref().submit({0, 0x70000000, 4096, 0, RequestOperation::read, 0}, ticket), Status::ok);
    ASSERT_TRUE(target.take(command));
    EXPECT_EQ(command.dword[6], 0x70000000u);
    EXPECT_EQ(command.dword[8], 0u);
    ASSERT_EQ(parts.ring.ref().submit({0, 0x70000000, 8192, 0, RequestOperation::read, 0}, ticket), Status::ok);
    ASSERT_TRUE(target.take(command));
    EXPECT_EQ(command.dword[8], 0x70001000u);
    EXPECT_EQ(parts.ring.ref().submit({0, 0x70000000, 12288, 0, RequestOperation::read, 0}, ticket), Status::invalid);
}

TEST(NvmeRingTest, completions_nobody_waits_for_are_counted_and_free_nothing) {
    RingParts parts({.depth = 4});
    NvmeTarget<Native> target = parts.target();
    const NvmeRingRef<Native> channel = parts.ring.ref();
    u32 ticket = 0;
    ASSERT_EQ(channel.submit({0, 0, 512, 0, RequestOperation::read, 0}, ticket), Status::ok);
    NvmeCommand command{};
    ASSERT_TRUE(target.take(command));
    EXPECT_TRUE(target.complete(2, 0));     // a free slot
    EXPECT_TRUE(target.complete(4000, 0));  // no slot
    EXPECT_EQ(channel.test(ticket), Status::pending);
    EXPECT_TRUE(target.complete(slot_of(ticket), 0x281));
    EXPECT_TRUE(channel.serve());
    EXPECT_TRUE(target.complete(slot_of(ticket), 0));  // twice
    EXPECT_EQ(channel.test(ticket), Status::io_error);
    EXPECT_TRUE(channel.serve());
    EXPECT_EQ(parts.ring.state().stray, 3u);
    EXPECT_EQ(parts.ring.state().errors, 1u);
    EXPECT_EQ(parts.ring.state().last_error >> 17 & 0x3ff, 0x281u);
}

TEST(NvmeRingTest, entries_of_the_lap_before_are_not_taken_for_new_ones) {
    RingParts parts({.depth = 2});
    NvmeTarget<Native> target = parts.target();
    const NvmeRingRef<Native> channel = parts.ring.ref();
    for (int lap = 0; lap < 9; ++lap) {
        u32 ticket = 0;
        NvmeCommand command{};
        ASSERT_EQ(channel.submit({0, 0, 512, 0, RequestOperation::read, 0}, ticket), Status::ok);
        EXPECT_EQ(channel.test(ticket), Status::pending);
        ASSERT_TRUE(target.take(command));
        EXPECT_EQ(channel.test(ticket), Status::pending);
        ASSERT_TRUE(target.complete(0, 0));
        EXPECT_EQ(channel.test(ticket), Status::ok);
        EXPECT_EQ(parts.completion_doorbell, (lap + 1u) % 2);
        channel.release(ticket);
    }
    EXPECT_EQ(parts.ring.state().completed, 9u);
}

// A ring that several share, while another thread has its turn.
struct TurnTaken {
    explicit TurnTaken(u32 depth) : parts({.depth = depth}) { EXPECT_TRUE(turn.try_take()); }
    RingParts parts;
    NvmeTarget<Native> target = parts.target();
    NvmeRingRef<Native> channel = parts.ring.ref(0, true);
    RingTurn<Native> turn{&channel.state->turn};
};

TEST(NvmeRingTest, what_is_published_while_another_has_the_turn_is_sent_by_who_has_it_next_with_one_doorbell) {
    TurnTaken ring(8);
    const NvmeRingRef<Native>& channel = ring.channel;
    u32 tickets[3] = {};
    for (u32 i = 0; i < 3; ++i) {
        ASSERT_EQ(channel.submit({i * block, 0, block, 0, RequestOperation::read, 0}, tickets[i]), Status::ok);
        EXPECT_EQ(channel.test(tickets[i]), Status::pending);
    }
    EXPECT_EQ(ring.parts.submission_doorbell, 0u);
    EXPECT_EQ(ring.parts.ring.state().contended, 3u);
    EXPECT_EQ(ring.parts.ring.state().unsent, 3u);
    ring.turn.give();
    EXPECT_EQ(channel.test(tickets[1]), Status::pending);
    EXPECT_EQ(ring.parts.submission_doorbell, 3u);
    EXPECT_EQ(ring.parts.ring.state().unsent, 0u);
    std::set<u64> blocks;
    NvmeCommand command{};
    while (ring.target.take(command)) blocks.insert(command.dword[10]);
    EXPECT_EQ(blocks, (std::set<u64>{0, 1, 2}));
    EXPECT_EQ(ring.parts.ring.state().submitted, 3u);
}

TEST(NvmeRingTest, a_command_that_met_its_deadline_unsent_keeps_its_slot_until_it_was_carried_out) {
    TurnTaken ring(2);
    const NvmeRingRef<Native>& channel = ring.channel;
    u32 ticket = 0, next = 0;
    ASSERT_EQ(channel.submit({0, 0, block, 0, RequestOperation::write, 0}, ticket), Status::ok);
    EXPECT_EQ(channel.wait(ticket, 1), Status::timed_out);
    ring.turn.give();
    NvmeCommand command{};
    EXPECT_FALSE(ring.target.take(command));
    EXPECT_EQ(channel.claim(next), Status::busy) << "which also sends it";
    ASSERT_TRUE(ring.target.take(command));
    ASSERT_TRUE(ring.target.complete(slot_of(ticket), 0));
    EXPECT_EQ(channel.claim(next), Status::ok);
    EXPECT_EQ(ring.parts.ring.state().late, 1u);
}

TEST(NvmeRingTest, impossible_sizes_are_refused) {
    RigMemory memory;
    for (const u32 depth : {0u, 1u, 3u, 100u, 2048u}) {
        EXPECT_THROW(NvmeRing(memory, {.depth = depth}), Error) << depth;
    }
    EXPECT_NO_THROW(NvmeRing(memory, {.depth = 1024}));
    EXPECT_THROW(NvmeRing(memory, {.slot_bytes = 1000}), Error);
    EXPECT_THROW(NvmeRing(memory, {.depth = 2, .slot_bytes = 4096 * 514}), Error);
    EXPECT_NO_THROW(NvmeRing(memory, {.depth = 2, .slot_bytes = 4096 * 513}));
    EXPECT_THROW(NvmeRing(memory, {.page_bytes = 512}), Error);
}

}  // namespace
}  // namespace penstock::ondevice
