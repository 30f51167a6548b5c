// The table of slots, the mailbox and the NVMe ring under every order of their threads' steps, for sizes that allow it.
// Controls run on a platform that lacks one thing, and the explorer must find that.
#include <gtest/gtest.h>

#include "ondevice/model/model_rig.hpp"
#include "ondevice/nvme/target_rig.hpp"
#include "penstock/ondevice/mailbox.hpp"
#include "penstock/ondevice/nvme.hpp"

namespace penstock::ondevice {
namespace {

using model::Explorer;
using model::Program;
using model::Report;

constexpr u64 never = ~u64{0};
constexpr u64 at_once = 0;
constexpr u64 most = 3'000'000;

void tell(const Report& report) {
    testing::Test::RecordProperty("schedules", std::to_string(report.schedules));
    testing::Test::RecordProperty("steps", std::to_string(report.steps));
    printf("             %llu schedules, %llu steps, the longest %zu\n", report.schedules, report.steps,
           report.longest);
}
void expect_right(const Report& report) {
    tell(report);
    EXPECT_EQ(report.failure, "");
    EXPECT_TRUE(report.complete);
}

template <class P>
struct Table {
    u32 free_bits[1] = {};
    u32 words[4] = {};
    u32 data[4] = {};
    Slots<P> slots;
    explicit Table(u32 count) : slots{free_bits, words, count} { slots.reset(); }
};

template <class P>
Report claim_and_release(u32 threads, u32 count) {
    return Explorer().run([=] {
        auto table = std::make_shared<Table<P>>(count);
        Program program;
        for (u32 thread = 0; thread < threads; ++thread) {
            program.threads.push_back([=] {
                u32 ticket = 0;
                while (table->slots.claim_one(0, ticket) != Status::ok) P::pause(0);
                Watch<P>::writes(&table->data[slot_of(ticket)], 4);
                table->data[slot_of(ticket)] = thread;
                model::check(table->slots.is(ticket, SlotState::held), "a slot has two owners");
                table->slots.release(ticket);
            });
        }
        program.after = [=] { model::check(table->free_bits[0] == (1u << count) - 1, "a slot is gone"); };
        return program;
    }, most);
}

TEST(SlotsEveryOrder, a_slot_has_one_owner) {
    expect_right(claim_and_release<Model>(2, 1));
    expect_right(claim_and_release<Model>(2, 2));
    expect_right(claim_and_release<Model>(3, 2));
    expect_right(claim_and_release<Model>(3, 3));
    expect_right(claim_and_release<Model>(3, 4));
}

TEST(SlotsEveryOrder, control_a_claim_in_two_steps_is_found) {
    EXPECT_NE(claim_and_release<ModelOf<Broken::one_step_of_exchanges>>(2, 1).failure, "");
}

TEST(SlotsEveryOrder, completion_and_deadline_agree_who_frees) {
    expect_right(Explorer().run([] {
        auto table = std::make_shared<Table<Model>>(1);
        auto go = std::make_shared<u32>(0);
        return Program{{[=] {
                            u32 ticket = 0;
                            model::check(table->slots.claim_one(0, ticket) == Status::ok, "claim");
                            table->slots.mark(ticket, SlotState::sent);
                            Model::store<Scope::device>(go.get(), 1u);
                            if (table->slots.abandon(ticket)) return;
                            model::check(table->slots.test(ticket) == Status::io_error, "the status");
                            table->slots.release(ticket);
                        },
                        [=] {
                            while (Model::load<Scope::device>(go.get()) == 0) Model::pause(0);
                            model::check(table->slots.finish(0, Status::io_error) != Finish::stray, "stray");
                        }},
                       [=] { model::check(table->free_bits[0] == 1, "a slot is gone"); }};
    }, most));
}

template <class P>
struct Box {
    Table<P> table;
    MailboxDescriptor descriptors[4] = {};
    u32 completions[4] = {};
    u32 seen_laps[4] = {};
    u32 data[4] = {};
    u32 abandoned = 0;
    u32 marks[4] = {};
    explicit Box(u32 slots) : table(slots) {}

    MailboxRef<P> channel() {
        return {table.slots, descriptors, completions, reinterpret_cast<u8*>(data), 4, 0, &abandoned, marks};
    }
    MailboxServer<P> server() {
        return {descriptors, completions, seen_laps, 0, table.slots.slots, table.slots.slots - 1};
    }
    // Takes so many requests, and then ends them, the last first. The answer is the offset plus one.
    void serve(u32 together, u32 rounds) {
        MailboxServer<P> end = server();
        for (u32 round = 0; round < rounds; ++round) {
            u32 slots[4];
            for (u32 taken = 0; taken < together; ++taken) {
                Request request{};
                while (!end.next(slots[taken], request)) P::pause(0);
                u32* const word = &data[slots[taken]];
                if (request.operation == RequestOperation::write) {
                    Watch<P>::reads(word, 4);
                    model::check(*word == request.offset_bytes, "the data of another request");
                }
                Watch<P>::writes(word, 4);
                *word = static_cast<u32>(request.offset_bytes) + 1;
            }
            for (u32 left = together; left-- > 0;) end.complete(slots[left], Status::ok);
        }
    }
};

// Makes one request with its number as offset and data, and returns its status. Releases the slot unless it timed out.
template <class P, class Channel>
Status ask(const Channel& channel, u32 number, u64 deadline_ns, RequestOperation operation = RequestOperation::write) {
    u32 ticket = 0;
    while (channel.claim(ticket) != Status::ok) P::pause(0);
    u32* const data = static_cast<u32*>(channel.slot_data(ticket));
    if (operation == RequestOperation::write) {
        Watch<P>::writes(data, 4);
        *data = number;
    }
    model::check(channel.publish(ticket, {number, 0, 4, 0, operation, 0}) == Status::ok, "publish");
    const Status status = channel.wait(ticket, deadline_ns);
    if (status == Status::timed_out) return status;
    model::check(status == Status::ok, "the status");
    Watch<P>::reads(data, 4);
    model::check(*data == number + 1, "the answer to another request");
    channel.release(ticket);
    return status;
}

struct Case {
    u32 slots = 1;
    u32 clients = 1;
    u32 together = 1;  // requests the server takes before it ends them
    u32 each = 1;      // requests that a client makes
    u32 late = 0;      // how many clients do not wait for their first answer
    RequestOperation operation = RequestOperation::write;
};

template <class P>
Report mailbox(const Case& example) {
    return Explorer().run([=] {
        auto box = std::make_shared<Box<P>>(example.slots);
        Program program;
        for (u32 client = 0; client < example.clients; ++client) {
            program.threads.push_back([=] {
                for (u32 turn = 0; turn < example.each; ++turn) {
                    const bool late = client < example.late && turn == 0;
                    ask<P>(box->channel(), 100 * client + 10 * turn, late ? at_once : never,
                           example.operation);
                }
            });
        }
        const u32 rounds = example.clients * example.each / example.together;
        program.threads.push_back([=] { box->serve(example.together, rounds); });
        program.after = [=] {
            const u32 all = (1u << example.slots) - 1;
            const u32 held = all & ~box->table.free_bits[0];
            for (u32 slot = 0; slot < example.slots; ++slot) {
                const bool abandoned = state_of(box->table.words[slot]) == SlotState::abandoned;
                model::check(abandoned == ((held >> slot & 1) != 0), "a slot is gone");
            }
            model::check(count(held) == box->abandoned, "the count of abandoned slots");
        };
        return program;
    }, most);
}

TEST(MailboxEveryOrder, requests_reach_the_server_and_answers_their_client) {
    expect_right(mailbox<Model>({.slots = 1, .clients = 1, .each = 3}));
    expect_right(mailbox<Model>({.slots = 2, .clients = 2, .together = 2}));
    expect_right(mailbox<Model>({.slots = 1, .clients = 2}));
    expect_right(mailbox<Model>({.slots = 3, .clients = 2, .together = 2}));
    expect_right(mailbox<Model>({.slots = 4, .clients = 2, .together = 2}));
}

TEST(MailboxEveryOrder, a_late_completion_frees_the_slot_once_and_its_data_are_nobodys_before) {
    expect_right(mailbox<Model>({.slots = 1, .clients = 1, .each = 2, .late = 1}));
    expect_right(mailbox<Model>({.slots = 1, .clients = 2, .late = 1}));
}

TEST(MailboxEveryOrder, a_read_brings_bytes_where_earlier_owners_have_read_theirs) {
    expect_right(mailbox<Model>({.slots = 1, .clients = 1, .each = 3, .operation = RequestOperation::read}));
    expect_right(mailbox<Model>({.slots = 2, .clients = 2, .together = 2, .operation = RequestOperation::read}));
    expect_right(mailbox<Model>({.slots = 1, .clients = 2, .operation = RequestOperation::read}));
}

TEST(MailboxEveryOrder, control_weakened_platforms_are_found) {
    const Case example{.slots = 2, .clients = 2, .together = 2};
    EXPECT_NE(mailbox<ModelOf<Broken::release_of_stores>>(example).failure.find("without order"), std::string::npos);
    EXPECT_NE(mailbox<ModelOf<Broken::acquire_of_loads>>(example).failure.find("without order"), std::string::npos);
    EXPECT_NE(mailbox<ModelOf<Broken::one_step_of_exchanges>>(example).failure, "");
}

template <class P>
struct Ring {
    Table<P> table;
    NvmeRingState state{};
    NvmeCommand submission[4] = {};
    NvmeCompletion completion[4] = {};
    u32 submission_doorbell = 0;
    u32 completion_doorbell = 0;
    u32 data[4] = {};
    u32 abandoned = 0;
    u32 unsent = 0;
    u32 marks[4] = {};
    NvmeCommand commands[4] = {};
    bool shared;
    Ring(u32 depth, bool is_shared) : table(depth - 1), shared(is_shared) { state.phase = 1; }

    NvmeRingRef<P> channel() {
        NvmeRingRef<P> ref{};
        ref.slots = table.slots;
        ref.state = &state;
        ref.submission = submission;
        ref.completion = completion;
        ref.submission_doorbell = &submission_doorbell;
        ref.completion_doorbell = &completion_doorbell;
        ref.space = {1, 0, 1u << 20};
        ref.area = {reinterpret_cast<u8*>(data), 1u << 30, 0, 8, 4, 4096, 4};
        ref.entries = table.slots.slots + 1;
        ref.shared = shared ? 1 : 0;
        ref.commands = commands;
        ref.unsent = &unsent;
        ref.abandoned = &abandoned;
        ref.marks = marks;
        return ref;
    }
    void serve(u32 together, u32 rounds) {
        NvmeTarget<P> target{submission, completion, &submission_doorbell, &completion_doorbell,
                             table.slots.slots + 1};
        for (u32 round = 0; round < rounds; ++round) {
            u32 ids[4];
            for (u32 taken = 0; taken < together; ++taken) {
                NvmeCommand command{};
                while (!target.take(command)) P::pause(0);
                ids[taken] = command.dword[0] >> 16;
                u32* const word = &data[ids[taken]];
                Watch<P>::reads(word, 4);
                model::check(*word == command.dword[10], "the data of another request");
                Watch<P>::writes(word, 4);
                *word += 1;
            }
            for (u32 left = together; left-- > 0;) {
                while (!target.complete(ids[left], 0)) P::pause(0);
            }
        }
    }
};

template <class P>
Report ring(const Case& example, u32 depth, u64 most_schedules = most, unsigned switches = Explorer::any_number) {
    return Explorer().run([=] {
        auto parts = std::make_shared<Ring<P>>(depth, example.clients > 1);
        Program program;
        for (u32 client = 0; client < example.clients; ++client) {
            program.threads.push_back([=] {
                for (u32 turn = 0; turn < example.each; ++turn) {
                    const bool late = client < example.late && turn == 0;
                    ask<P>(parts->channel(), 100 * client + 10 * turn, late ? at_once : never);
                }
            });
        }
        const u32 rounds = example.clients * example.each / example.together;
        program.threads.push_back([=] { parts->serve(example.together, rounds); });
        program.after = [=] { model::check(parts->state.stray == 0, "a completion that no lane waited for"); };
        return program;
    }, most_schedules, switches);
}

TEST(RingEveryOrder, one_warp_over_laps_of_two_and_four_entries) {
    expect_right(ring<Model>({.each = 3}, 2));
    expect_right(ring<Model>({.each = 5}, 4));
}

TEST(RingEveryOrder, a_late_completion_frees_the_slot) {
    expect_right(ring<Model>({.each = 2, .late = 1}, 2));
    expect_right(ring<Model>({.each = 3, .late = 1}, 4));
}

TEST(RingEveryOrder, two_warps_take_turns) {
    const Case once{.clients = 2, .late = 2}, again{.clients = 2, .together = 2};
    expect_right(ring<Model>(once, 4, most, 2));
    expect_right(ring<Model>(again, 4, most, 1));
    // With any number of switches, two warps that wait for nothing have two million orders, and two that ask again and
    // again have no end of them: the test tries the first ones.
    for (const auto& [example, first] : {std::pair{once, 100'000}, std::pair{again, 20'000}}) {
        const Report report = ring<Model>(example, 4, static_cast<u64>(first));
        tell(report);
        EXPECT_EQ(report.failure, "");
    }
}

TEST(RingEveryOrder, control_weakened_platforms_are_found) {
    const Case example{.each = 2};
    EXPECT_NE(ring<ModelOf<Broken::release_of_stores>>(example, 2).failure.find("without order"), std::string::npos);
    EXPECT_NE(ring<ModelOf<Broken::acquire_of_loads>>(example, 2).failure.find("without order"), std::string::npos);
    EXPECT_NE(ring<ModelOf<Broken::one_step_of_exchanges>>({.clients = 2}, 4).failure, "");
}

}  // namespace
}  // namespace penstock::ondevice
