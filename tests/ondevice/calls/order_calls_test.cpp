// Calls under every order of steps: the argument reaches the host and the answer its caller, and the slot
// of a call that ended late, or was left to itself, is used again only when the host is done with it.
#include <gtest/gtest.h>

#include "ondevice/model/model_rig.hpp"
#include "penstock/ondevice/calls.hpp"

namespace penstock::ondevice {
namespace {

using model::Explorer;
using model::Program;
using model::Report;

constexpr u64 kNeverLate = ~u64{0}, kLateAtOnce = 0, kMostOrders = 3'000'000;
constexpr u32 kSlotBytes = 32;

template <class P>
struct CallBox {
    u32 free_bits[1] = {};
    u32 words[2] = {};
    MailboxDescriptor descriptors[2] = {};
    MailboxAnswer completions[2] = {};
    u32 seen_laps[2] = {};
    alignas(16) u8 data[2 * kSlotBytes] = {};
    u32 abandoned = 0;
    u32 marks[2] = {};
    u32 count;
    explicit CallBox(u32 slots) : count(slots) { Slots<P>{free_bits, words, slots}.reset(); }

    Calls<P> calls() {
        return {{{free_bits, words, count}, descriptors, completions, data, kSlotBytes, 0, &abandoned, marks}, 0};
    }
    // The host: the argument must be the value; the answer is one more, and the result two more. A call in a head names
    // no file, and has an answer of 4 bytes; another one's has 12.
    void serve(u32 rounds) {
        MailboxServer<P, true> end{descriptors, completions, seen_laps, 0, count, count - 1};
        for (u32 round = 0; round < rounds; ++round) {
            u32 slot = 0;
            Request request{};
            while (!end.next(slot, request)) P::pause(0);
            u8* const memory = data + slot * kSlotBytes;
            auto* const block = reinterpret_cast<u32*>(memory + sizeof(CallHead));
            CallHead head{};
            while (!load_head<P>(memory, end.lap(slot), false, head)) P::pause(0);
            const bool is_small = request.operation == call_in_head;
            if (!is_small) Watch<P>::reads(block, request.bytes);
            const u64 argument = is_small ? head.block : block[0];
            model::check(argument == request.offset_bytes, "the argument of another call");
            model::check(is_small || head.block == argument + 7, "the file of another call");
            const u32 bytes = is_small ? 4 : 12;
            model::check(head.answer_most() == bytes, "the room of another call");
            Watch<P>::writes(block, bytes);
            for (u32 i = 0; i * 4 < bytes; ++i) block[i] = static_cast<u32>(argument) + 1 + i;
            answer_call(end, memory, slot, {Status::ok, bytes, static_cast<long long>(request.offset_bytes) + 2});
        }
    }
};

struct CallCase {
    u32 slots = 1;
    u32 callers = 1;
    u32 each = 1;  // calls that a caller makes
    u32 late = 0;  // how many callers do not wait for their first answer
    bool is_small = false;
};

// Makes calls: small ones, or with a file and an argument and an answer that no head has room for.
template <class P>
struct NamedCaller : Calls<P> {
    explicit NamedCaller(const Calls<P>& calls) : Calls<P>(calls) {}
    void run(u32 number, bool is_small, u64 deadline_ns) const {
        const u32 argument[3] = {number, 1, 2}, bytes = is_small ? 4 : 12;
        u32 answer[3] = {};
        const CallEnd end = this->exchange({20, number, argument, bytes, answer, bytes}, is_small ? 0 : number + 7,
                                           deadline_ns);
        if (end.status == Status::timed_out || end.status == Status::busy) {
            model::check(deadline_ns == kLateAtOnce, "late");
            return;
        }
        model::check(end.ok() && end.answer_bytes == bytes, "the status");
        for (u32 i = 0; i * 4 < bytes; ++i) model::check(answer[i] == number + 1 + i, "the answer to another call");
        model::check(end.value == static_cast<long long>(number) + 2, "the result of another call");
    }
};

template <class P>
Report calls_in_every_order(const CallCase& example) {
    return Explorer().run([=] {
        auto box = std::make_shared<CallBox<P>>(example.slots);
        Program program;
        for (u32 caller = 0; caller < example.callers; ++caller) {
            program.threads.push_back([=] {
                for (u32 turn = 0; turn < example.each; ++turn) {
                    const bool late = caller < example.late && turn == 0;
                    const u64 deadline_ns = late ? kLateAtOnce : kNeverLate;
                    NamedCaller<P>(box->calls()).run(100 * caller + 10 * turn, example.is_small, deadline_ns);
                }
            });
        }
        program.threads.push_back([=] { box->serve(example.callers * example.each); });
        program.after = [=] {
            const u32 taken = ((1u << example.slots) - 1) & ~box->free_bits[0];
            model::check(count(taken) == box->abandoned, "a slot is gone");
        };
        return program;
    }, kMostOrders);
}

void expect_no_failure(const Report& report) {
    printf("             %llu schedules, %llu steps\n", report.schedules, report.steps);
    EXPECT_EQ(report.failure, "");
    EXPECT_TRUE(report.complete);
}

class CallsEveryOrder : public testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(in, CallsEveryOrder, testing::Values(false, true),
                         [](const auto& one) { return std::string(one.param ? "heads" : "slots"); });

TEST_P(CallsEveryOrder, arguments_reach_the_host_and_answers_their_caller) {
    expect_no_failure(calls_in_every_order<Model>({.each = GetParam() ? 2u : 3u, .is_small = GetParam()}));
    expect_no_failure(calls_in_every_order<Model>({.slots = 2, .callers = 2, .is_small = GetParam()}));
    expect_no_failure(calls_in_every_order<Model>({.slots = 1, .callers = 2, .is_small = GetParam()}));
}

TEST_P(CallsEveryOrder, a_late_answer_stays_in_the_slot_of_its_call) {
    expect_no_failure(calls_in_every_order<Model>({.each = 2, .late = 1, .is_small = GetParam()}));
    const u32 each = GetParam() ? 2 : 3;  // a head has steps of its own, and so has many more orders
    expect_no_failure(calls_in_every_order<Model>({.slots = 2, .each = each, .late = 1, .is_small = GetParam()}));
}

TEST(CallsInOrder, control_weakened_platforms_are_found) {
    const CallCase example{.slots = 2, .callers = 2};
    const auto failure = [&]<class P>() { return calls_in_every_order<P>(example).failure; };
    EXPECT_NE(failure.operator()<ModelOf<Broken::release_of_stores>>().find("without order"), std::string::npos);
    EXPECT_NE(failure.operator()<ModelOf<Broken::acquire_of_loads>>().find("without order"), std::string::npos);
    EXPECT_NE(failure.operator()<ModelOf<Broken::one_step_of_exchanges>>(), "");
}

// Heads are pieces that tell whose they are, so that weaker stores and loads do no harm to them; two claims of one slot
// do.
TEST(CallsInOrder, control_two_calls_in_one_head_are_found) {
    const CallCase example{.slots = 2, .callers = 2, .is_small = true};
    EXPECT_NE(calls_in_every_order<ModelOf<Broken::one_step_of_exchanges>>(example).failure, "");
}

}  // namespace
}  // namespace penstock::ondevice
