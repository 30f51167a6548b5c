// The mailbox passes the channels' kit over server threads of the test. Its descriptor loses nothing. Its owner refuses
// sizes that cannot be.
#include "ondevice/mailbox_memory.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "ondevice/channel/channel_kit_rig.hpp"
#include "ondevice/channel/memory_rig.hpp"
#include "penstock/error.hpp"

namespace penstock::ondevice {
namespace {

class MailboxRig {
  public:
    explicit MailboxRig(const kit::Setup& setup)
        : mailbox_(memory_, memory_, {setup.slots, setup.slot_bytes}), bytes_(setup.storage_bytes) {
        const u32 servers = std::min(setup.servers, setup.slots);
        for (u32 server = 0; server < servers; ++server) {
            kit::Faults faults = setup.faults;
            faults.seed += server;
            backlogs_.push_back(std::make_unique<kit::Backlog>(bytes_, faults));
            const u32 first = setup.slots * server / servers;
            const u32 last = setup.slots * (server + 1) / servers;
            threads_.emplace_back([this, first, last, &backlog = *backlogs_.back()] { serve(first, last, backlog); });
        }
    }
    ~MailboxRig() { stop(); }

    MailboxRef<Native> channel(u32 client) { return mailbox_.ref(client * 5); }
    void hold(bool hold) { hold_ = hold; }
    kit::Counts stop() {
        stop_ = true;
        for (std::thread& thread : threads_) thread.join();
        threads_.clear();
        kit::Counts counts;
        for (const auto& backlog : backlogs_) counts += *backlog;
        return counts;
    }

  private:
    void serve(u32 first, u32 last, kit::Backlog& backlog) {
        MailboxServer<Native> server = mailbox_.server(first, last);
        while (!stop_) {
            if (hold_) {
                Native::pause(0);
                continue;
            }
            u32 slot = 0;
            Request request{};
            const bool came = server.next(slot, request);
            if (came) backlog.add({slot, request, {{mailbox_.slot_data(slot), request.bytes}}, 0, false});
            const auto work = backlog.take(!came);
            if (work) server.complete(work->slot, work->fail ? Status::io_error : Status::ok);
            if (!came && !work) Native::pause(0);
        }
    }

    RigMemory memory_;
    Mailbox mailbox_;
    kit::Bytes bytes_;
    std::vector<std::unique_ptr<kit::Backlog>> backlogs_;
    std::vector<std::thread> threads_;
    std::atomic<bool> stop_{false};
    std::atomic<bool> hold_{false};
};

}  // namespace

namespace kit {
INSTANTIATE_TYPED_TEST_SUITE_P(Mailbox, ChannelKit, MailboxRig);
}  // namespace kit

namespace {

TEST(MailboxTest, a_descriptor_carries_every_field) {
    RigMemory memory;
    Mailbox mailbox(memory, memory, {1, mailbox_most_bytes});
    MailboxServer<Native> server = mailbox.server(0, 1);
    const MailboxRef<Native> channel = mailbox.ref();
    const Request sent{~u64{0} - 5, 0, mailbox_most_bytes, 0xfffe, RequestOperation::flush, 0};
    u32 ticket = 0;
    u32 slot = 9;
    Request got{};
    EXPECT_FALSE(server.next(slot, got));
    ASSERT_EQ(channel.submit(sent, ticket), Status::ok);
    ASSERT_TRUE(server.next(slot, got));
    EXPECT_EQ(slot, 0u);
    EXPECT_EQ(got.offset_bytes, sent.offset_bytes);
    EXPECT_EQ(got.bytes, sent.bytes);
    EXPECT_EQ(got.file, sent.file);
    EXPECT_EQ(got.operation, sent.operation);
    EXPECT_FALSE(server.next(slot, got)) << "a descriptor is taken once";
    server.complete(slot, Status::truncated);
    EXPECT_EQ(channel.wait(ticket, kit::far()), Status::truncated);
}

TEST(MailboxTest, every_final_status_comes_through) {
    RigMemory memory;
    Mailbox mailbox(memory, memory, {2, 512});
    MailboxServer<Native> server = mailbox.server(0, 2);
    const MailboxRef<Native> channel = mailbox.ref();
    for (int number = -8; number <= 0; ++number) {
        u32 ticket = 0;
        u32 slot = 0;
        Request request{};
        ASSERT_EQ(channel.submit({0, 0, 512, 0, RequestOperation::read, 0}, ticket), Status::ok);
        ASSERT_TRUE(server.next(slot, request));
        server.complete(slot, static_cast<Status>(number));
        EXPECT_EQ(channel.test(ticket), static_cast<Status>(number));
        EXPECT_STRNE(words(static_cast<Status>(number)), "unknown status");
        channel.release(ticket);
    }
}

TEST(MailboxTest, the_lap_goes_round_without_a_request_lost_or_taken_twice) {
    RigMemory memory;
    Mailbox mailbox(memory, memory, {1, 512});
    MailboxServer<Native> server = mailbox.server(0, 1);
    const MailboxRef<Native> channel = mailbox.ref();
    const u32 laps = lap_mask + 5;
    for (u32 lap = 0; lap < laps; ++lap) {
        u32 ticket = 0;
        u32 slot = 0;
        Request request{};
        ASSERT_EQ(channel.submit({lap, 0, 512, 0, RequestOperation::read, 0}, ticket), Status::ok);
        ASSERT_EQ(channel.test(ticket), Status::pending) << lap;
        ASSERT_TRUE(server.next(slot, request)) << lap;
        ASSERT_EQ(request.offset_bytes, lap);
        server.complete(slot, Status::ok);
        ASSERT_EQ(channel.test(ticket), Status::ok);
        channel.release(ticket);
    }
}

TEST(MailboxTest, several_slots_are_claimed_by_one_atomic) {
    RigMemory memory;
    Mailbox mailbox(memory, memory, {40, 512});
    const MailboxRef<Native> channel = mailbox.ref();
    const ClaimedSlots many = channel.claim_many(30);
    EXPECT_EQ(count(many.bits), 30u);
    std::set<u32> slots;
    for (u32 bit = 0; bit < 32; ++bit) {
        if ((many.bits >> bit & 1) != 0) slots.insert(many.first + bit);
    }
    for (u32 left = 0; left < 10; ++left) {
        const ClaimedSlots one = channel.claim_many(1);
        ASSERT_EQ(count(one.bits), 1u);
        EXPECT_TRUE(slots.insert(one.first + lowest(one.bits)).second);
    }
    EXPECT_EQ(channel.claim_many(1).bits, 0u);
    EXPECT_EQ(*slots.rbegin(), 39u);
    for (const u32 slot : slots) channel.release(channel.open(slot));
    EXPECT_EQ(count(channel.claim_many(32).bits), 32u);
}

// The number of the bitmap word that has each caller's slot, caller after caller.
std::vector<u32> words_of_callers(const MailboxRef<Native>& channel, u32 callers) {
    std::vector<u32> words;
    for (u32 caller = 0; caller < callers; ++caller) {
        u32 ticket = 0;
        EXPECT_EQ(channel.claim(ticket, caller), Status::ok);
        words.push_back(slot_of(ticket) / 32);
    }
    return words;
}

TEST(MailboxTest, neighbours_have_large_slots_together_and_small_ones_apart) {
    RigMemory memory;
    Mailbox large(memory, memory, {512, mailbox_large_bytes}), small(memory, memory, {512, 4096});
    const auto together = words_of_callers(large.ref(), 512), apart = words_of_callers(small.ref(), 16);
    std::set<u32> seen;
    for (u32 caller = 0; caller < 512; caller += 32) {
        const auto first = together.begin() + caller;
        EXPECT_EQ(std::set<u32>(first, first + 32).size(), 1u) << caller;
        EXPECT_TRUE(seen.insert(*first).second) << "a word for each 32 callers";
        const u32 step = caller == 0 ? 16 : (together[caller] + 16 - together[caller - 32]) % 16;
        EXPECT_GE(std::min(step, 16 - step % 16), 4u) << "the next 32 are far away";
    }
    EXPECT_EQ(std::set<u32>(apart.begin(), apart.end()).size(), 16u);
}

TEST(MailboxTest, impossible_sizes_are_refused) {
    RigMemory memory;
    EXPECT_THROW(Mailbox(memory, memory, {0, 512}), Error);
    EXPECT_THROW(Mailbox(memory, memory, {16385, 512}), Error);
    EXPECT_THROW(Mailbox(memory, memory, {1, 1u << 24}), Error);
    EXPECT_THROW(Mailbox(memory, memory, {1, 0}), Error);
    Mailbox mailbox(memory, memory, {1024, 512});
    EXPECT_THROW(mailbox.server(0, 1025), Error);
    EXPECT_THROW(mailbox.server(3, 3), Error);
}

TEST(MailboxTest, a_refusal_says_what_to_give) {
    RigMemory memory;
    try {
        Mailbox(memory, memory, {1u << 30, 512});
        FAIL() << "it was not refused";
    } catch (const Error& error) {
        EXPECT_EQ(error.info().cause, "1073741824 slots");
        EXPECT_EQ(error.info().advice, "give 1 to 16384");
    }
}

TEST(MailboxTest, more_memory_than_the_host_has_is_refused_before_it_is_taken) {
    RigMemory memory;
    const u64 there = static_cast<u64>(::sysconf(_SC_PHYS_PAGES)) * static_cast<u64>(::sysconf(_SC_PAGESIZE));
    const MailboxSizes sizes{16384, mailbox_most_bytes};
    if (u64{sizes.slots} * sizes.slot_bytes <= there) GTEST_SKIP() << "this host has more than a mailbox can take";
    try {
        Mailbox(memory, memory, sizes);
        FAIL() << "it was not refused";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
        EXPECT_EQ(error.info().advice, "give fewer slots, or smaller pages");
    }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // both need address space of their own
// Ends the process, which may take 64 MiB more than it has. Its exit code is 0 if the mailbox refused so many slots for
// their number, and 2 if it asked for their memory.
void make_a_mailbox_where_memory_is_short(u32 slots) {
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t limit = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + (64 << 20);
    const rlimit room{limit, limit};
    ::setrlimit(RLIMIT_AS, &room);
    RigMemory memory;
    try {
        Mailbox(memory, memory, {slots, 8192});
    } catch (const Error&) {
        ::_exit(0);
    } catch (const std::bad_alloc&) {
        ::_exit(2);
    }
    ::_exit(1);
}

TEST(MailboxDeathTest, too_many_slots_are_refused_before_memory_is_taken_for_them) {
    EXPECT_EXIT(make_a_mailbox_where_memory_is_short(~0u), testing::ExitedWithCode(0), "");
}
TEST(MailboxDeathTest, control_memory_that_is_asked_for_is_not_there) {
    EXPECT_EXIT(make_a_mailbox_where_memory_is_short(most_slots), testing::ExitedWithCode(2), "");
}
#endif

}  // namespace
}  // namespace penstock::ondevice
