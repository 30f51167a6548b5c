// What every channel of device code must keep, as tests over a rig: a channel, storage behind it, server threads.
//
// A rig has: Rig(const Setup&); Channel channel(u32 client); Counts stop(), which ends the servers; and hold(bool),
// which keeps servers from taking or ending anything. Controls show that the tests notice servers that break the rules.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "ondevice/channel/channel_client_rig.hpp"
#include "ondevice/channel/storage_rig.hpp"

namespace penstock::ondevice::kit {

struct Setup {
    u32 slots = 7;  // 7 or more, and one less than a power of two
    u32 slot_bytes = 4096;
    u64 storage_bytes = u64{1} << 20;
    u32 servers = 1;
    Faults faults{};
};

struct Counts {
    u64 failed = 0;
    u64 lost = 0;
    u64 reordered = 0;
    u64 stray = 0;
    void operator+=(const Backlog& backlog) {
        failed += backlog.failed();
        lost += backlog.lost();
        reordered += backlog.reordered();
    }
};

struct Load {
    u32 clients = 4;
    ClientPlan plan{};
};

template <class Rig>
Tally run_clients(Rig& rig, const Load& load) {
    std::vector<Tally> tallies(load.clients);
    std::vector<std::thread> threads;
    for (u32 client = 0; client < load.clients; ++client) {
        threads.emplace_back([&, client] {
            ClientPlan plan = load.plan;
            plan.first_byte = u64{client} * plan.cells * plan.cell_bytes;
            plan.seed = load.plan.seed * 100 + client;
            tallies[client] = Client(rig.channel(client), plan).run();
        });
    }
    for (std::thread& thread : threads) thread.join();
    Tally sum;
    for (const Tally& tally : tallies) sum += tally;
    return sum;
}

inline u64 in_ms(u64 ms) { return Native::now_ns() + ms * 1'000'000; }
inline u64 far() { return in_ms(30'000); }

template <class Rig>
class ChannelKit : public testing::Test {};
TYPED_TEST_SUITE_P(ChannelKit);

TYPED_TEST_P(ChannelKit, bytes_written_are_read_back) {
    TypeParam rig(Setup{});
    auto channel = rig.channel(0);
    u32 ticket = 0;
    ASSERT_EQ(channel.claim(ticket), Status::ok);
    std::memset(channel.slot_data(ticket), 0x5a, 1024);
    ASSERT_EQ(channel.publish(ticket, {4096, 0, 1024, 0, RequestOperation::write, 0}), Status::ok);
    EXPECT_EQ(channel.wait(ticket, far()), Status::ok);
    channel.release(ticket);
    ASSERT_EQ(channel.submit({4096 + 512, 0, 1024, 0, RequestOperation::read, 0}, ticket), Status::ok);
    EXPECT_EQ(channel.wait(ticket, far()), Status::ok);
    const u8* const data = static_cast<const u8*>(channel.slot_data(ticket));
    EXPECT_EQ(data[0], 0x5a);
    EXPECT_EQ(data[511], 0x5a);
    EXPECT_EQ(data[512], 0);
    channel.release(ticket);
    ASSERT_EQ(channel.submit({0, 0, 0, 0, RequestOperation::flush, 0}, ticket), Status::ok);
    EXPECT_EQ(channel.wait(ticket, far()), Status::ok);
    channel.release(ticket);
}

TYPED_TEST_P(ChannelKit, a_final_status_is_given_once_and_an_old_ticket_is_told) {
    TypeParam rig(Setup{.slots = 1});
    auto channel = rig.channel(0);
    u32 ticket = 0;
    u32 other = 0;
    ASSERT_EQ(channel.submit({0, 0, 512, 0, RequestOperation::read, 0}, ticket), Status::ok);
    channel.release(ticket);  // too early: nothing happens
    EXPECT_EQ(channel.wait(ticket, far()), Status::ok);
    EXPECT_EQ(channel.test(ticket), Status::invalid);
    EXPECT_EQ(channel.claim(other), Status::busy);  // the data area still belongs to the ticket
    channel.release(ticket);
    channel.release(ticket);
    ASSERT_EQ(channel.claim(other), Status::ok);
    EXPECT_NE(other, ticket);
    EXPECT_EQ(channel.test(ticket), Status::invalid);
    EXPECT_EQ(channel.publish(ticket, {0, 0, 512, 0, RequestOperation::read, 0}), Status::invalid);
    EXPECT_TRUE(channel.settled(ticket));
    u32 third = 0;
    EXPECT_EQ(channel.claim(third), Status::busy);
    channel.release(other);
}

TYPED_TEST_P(ChannelKit, refuses_what_it_cannot_carry_and_keeps_no_slot_for_it) {
    TypeParam rig(Setup{.slots = 1});
    auto channel = rig.channel(0);
    u32 ticket = 0;
    EXPECT_EQ(channel.submit({0, 0, 8192, 0, RequestOperation::read, 0}, ticket), Status::invalid);
    EXPECT_EQ(channel.submit({0, 0, 512, 0, static_cast<RequestOperation>(3), 0}, ticket), Status::invalid);
    EXPECT_EQ(channel.claim(ticket), Status::ok);
    channel.release(ticket);
}

TYPED_TEST_P(ChannelKit, a_full_channel_is_busy_and_goes_on_when_there_is_room) {
    TypeParam rig(Setup{});
    auto channel = rig.channel(0);
    rig.hold(true);
    std::vector<u32> tickets;
    u32 ticket = 0;
    while (channel.submit({0, 0, 512, 0, RequestOperation::read, 0}, ticket) == Status::ok) tickets.push_back(ticket);
    EXPECT_EQ(tickets.size(), channel.depth());
    EXPECT_EQ(std::set<u32>(tickets.begin(), tickets.end()).size(), tickets.size());
    EXPECT_EQ(channel.submit({0, 0, 512, 0, RequestOperation::read, 0}, ticket), Status::busy);
    for (const u32 held : tickets) EXPECT_EQ(channel.test(held), Status::pending);
    rig.hold(false);
    for (const u32 held : tickets) {
        EXPECT_EQ(channel.wait(held, far()), Status::ok);
        channel.release(held);
    }
    EXPECT_EQ(channel.claim(ticket), Status::ok);
    channel.release(ticket);
}

TYPED_TEST_P(ChannelKit, a_timed_out_slot_is_used_again_only_after_its_late_completion) {
    TypeParam rig(Setup{.slots = 1});
    auto channel = rig.channel(0);
    rig.hold(true);
    u32 late = 0;
    u32 ticket = 0;
    ASSERT_EQ(channel.submit({0, 0, 512, 0, RequestOperation::read, 0}, late), Status::ok);
    EXPECT_EQ(channel.wait(late, in_ms(5)), Status::timed_out);
    EXPECT_EQ(channel.test(late), Status::invalid);
    channel.release(late);
    EXPECT_FALSE(channel.settled(late));
    EXPECT_EQ(channel.claim(ticket), Status::busy);
    rig.hold(false);
    while (channel.claim(ticket) == Status::busy) Native::pause(0);
    EXPECT_TRUE(channel.settled(late));
    ASSERT_EQ(channel.publish(ticket, {0, 0, 512, 0, RequestOperation::read, 0}), Status::ok);
    EXPECT_EQ(channel.wait(ticket, far()), Status::ok);
    channel.release(ticket);
}

TYPED_TEST_P(ChannelKit, what_was_given_up_is_late_by_its_mark_until_it_ended) {
    TypeParam rig(Setup{.slots = 3});
    auto channel = rig.channel(0);
    rig.hold(true);
    u32 first = 0;
    u32 other = 0;
    ASSERT_EQ(channel.claim(first), Status::ok);
    channel.mark(first, 7);
    ASSERT_EQ(channel.publish(first, {0, 0, 512, 0, RequestOperation::write, 0}), Status::ok);
    ASSERT_EQ(channel.claim(other), Status::ok);
    channel.mark(other, 9);
    ASSERT_EQ(channel.publish(other, {512, 0, 512, 0, RequestOperation::write, 0}), Status::ok);
    EXPECT_FALSE(channel.late(7)) << "its owner waits for it";
    EXPECT_EQ(channel.wait(first, in_ms(5)), Status::timed_out);
    EXPECT_TRUE(channel.late(7));
    EXPECT_FALSE(channel.late(9));
    rig.hold(false);
    EXPECT_EQ(channel.wait(other, far()), Status::ok);
    channel.release(other);
    const u64 end = far();
    while (channel.late(7) && Native::now_ns() < end) Native::pause(0);
    EXPECT_FALSE(channel.late(7));
    EXPECT_TRUE(channel.settled(first));
    std::vector<u32> tickets(channel.depth());
    for (u32& ticket : tickets) EXPECT_EQ(channel.claim(ticket), Status::ok);
}

TYPED_TEST_P(ChannelKit, many_threads_read_what_they_wrote_in_any_order_of_completion) {
    TypeParam rig(Setup{.slots = 15, .servers = 2, .faults = {.hold_most = 6, .delay_percent = 10}});
    const Tally tally = run_clients(rig, {.clients = 4, .plan = {.requests = 1500, .cell_bytes = 1024}});
    EXPECT_EQ(tally.ok, 6000u);
    EXPECT_EQ(tally.mismatches + tally.surprises + tally.errors + tally.timeouts, 0u);
    const Counts counts = rig.stop();
    EXPECT_EQ(counts.stray, 0u);
    EXPECT_GT(counts.reordered, 500u);
}

TYPED_TEST_P(ChannelKit, one_slot_serves_many_threads_over_many_laps) {
    TypeParam rig(Setup{.slots = 1});
    const Tally tally = run_clients(rig, {.clients = 3, .plan = {.requests = 700, .outstanding = 2}});
    EXPECT_EQ(tally.ok, 2100u);
    EXPECT_EQ(tally.mismatches + tally.surprises, 0u);
    EXPECT_GT(tally.busy, 0u);
}

TYPED_TEST_P(ChannelKit, an_error_reaches_the_request_that_failed_and_no_other) {
    TypeParam rig(Setup{.faults = {.hold_most = 4, .fail_percent = 15}});
    const Tally tally = run_clients(rig, {.clients = 3, .plan = {.requests = 1000}});
    EXPECT_EQ(tally.ok + tally.errors, 3000u);
    EXPECT_EQ(tally.mismatches + tally.surprises, 0u);
    EXPECT_EQ(tally.errors, rig.stop().failed);
    EXPECT_GT(tally.errors, 100u);
}

TYPED_TEST_P(ChannelKit, lost_completions_time_out_and_late_ones_harm_nobody) {
    TypeParam rig(Setup{.slots = 15, .faults = {.hold_most = 3, .fail_percent = 3, .lose_percent = 3}});
    const Tally tally = run_clients(rig, {.plan = {.requests = 200, .deadline_ns = 20'000'000}});
    EXPECT_EQ(tally.ok + tally.errors + tally.timeouts, 800u);
    EXPECT_EQ(tally.mismatches + tally.surprises, 0u);
    const Counts counts = rig.stop();
    EXPECT_GT(tally.timeouts, 0u);
    EXPECT_GT(counts.lost, 0u);
    EXPECT_EQ(counts.stray, 0u);
    auto channel = rig.channel(0);
    std::vector<u32> tickets(channel.depth());
    for (u32& ticket : tickets) EXPECT_EQ(channel.claim(ticket), Status::ok) << "a slot is gone";
}

TYPED_TEST_P(ChannelKit, control_a_wrong_byte_is_noticed) {
    TypeParam rig(Setup{.faults = {.corrupt_percent = 5}});
    EXPECT_GT(run_clients(rig, {.clients = 2, .plan = {.requests = 500}}).mismatches, 0u);
}

TYPED_TEST_P(ChannelKit, control_completions_of_the_wrong_request_are_noticed) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "this server races with its clients, and the sanitizer says so";
#endif
    TypeParam rig(Setup{.faults = {.hold_most = 4, .swap_percent = 30}});
    const Tally tally = run_clients(rig, {.clients = 2, .plan = {.requests = 500}});
    EXPECT_GT(tally.mismatches, 0u);
}

REGISTER_TYPED_TEST_SUITE_P(ChannelKit, bytes_written_are_read_back,
                            a_final_status_is_given_once_and_an_old_ticket_is_told,
                            refuses_what_it_cannot_carry_and_keeps_no_slot_for_it,
                            a_full_channel_is_busy_and_goes_on_when_there_is_room,
                            a_timed_out_slot_is_used_again_only_after_its_late_completion,
                            what_was_given_up_is_late_by_its_mark_until_it_ended,
                            many_threads_read_what_they_wrote_in_any_order_of_completion,
                            one_slot_serves_many_threads_over_many_laps,
                            an_error_reaches_the_request_that_failed_and_no_other,
                            lost_completions_time_out_and_late_ones_harm_nobody, control_a_wrong_byte_is_noticed,
                            control_completions_of_the_wrong_request_are_noticed);

}  // namespace penstock::ondevice::kit
