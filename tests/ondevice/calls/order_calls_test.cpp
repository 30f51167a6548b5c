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
    u32 completions[2] = {};
    u32 seen_laps[2] = {};
    alignas(16) u8 data[2 * kSlotBytes] = {};
    u32 abandoned = 0;
    u32 marks[2] = {};
    u32 count;
    explicit CallBox(u32 slots) : count(slots) { Slots<P>{free_bits, words, slots}.reset(); }

    Calls<P> calls() {
        return {{{free_bits, words, count}, descriptors, completions, data, kSlotBytes, 0, &abandoned, marks}, 0};
    }
    // The host: the argument must be the value; the answer is one more, and the result two more.
    void serve(u32 rounds) {
        MailboxServer<P> end{descriptors, completions, seen_laps, 0, count, count - 1};
        for (u32 round = 0; round < rounds; ++round) {
            u32 slot = 0;
            Request request{};
            while (!end.next(slot, request)) P::pause(0);
            auto* const head = reinterpret_cast<CallHead*>(data + slot * kSlotBytes);
            auto* const word = reinterpret_cast<u32*>(head + 1);
            Watch<P>::reads(head, sizeof *head);
            Watch<P>::reads(word, 4);
            model::check(*word == request.offset_bytes, "the argument of another call");
            model::check(head->file == *word + 7, "the file of another call");
            Watch<P>::writes(head, sizeof *head);
            Watch<P>::writes(word, 4);
            *word += 1;
            *head = {static_cast<long long>(request.offset_bytes) + 2, 4, 0};
            end.complete(slot, Status::ok);
        }
    }
};

struct CallCase {
    u32 slots = 1;
    u32 callers = 1;
    u32 each = 1;  // calls that a caller makes
    u32 late = 0;  // how many callers do not wait for their first answer
};

// Makes a call as read() and write() make them: with a file.
template <class P>
struct Caller : Calls<P> {
    explicit Caller(const Calls<P>& calls) : Calls<P>(calls) {}
    void run(u32 number, u64 deadline_ns) const {
        u32 answer = 0;
        const CallEnd end = this->exchange({20, number, &number, 4, &answer, 4}, number + 7, deadline_ns);
        if (end.status == Status::timed_out || end.status == Status::busy) {
            model::check(deadline_ns == kLateAtOnce, "late");
            return;
        }
        model::check(end.ok() && end.answer_bytes == 4, "the status");
        model::check(answer == number + 1, "the answer to another call");
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
                    Caller<P>(box->calls()).run(100 * caller + 10 * turn, late ? kLateAtOnce : kNeverLate);
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

TEST(CallsEveryOrder, arguments_reach_the_host_and_answers_their_caller) {
    expect_no_failure(calls_in_every_order<Model>({.each = 3}));
    expect_no_failure(calls_in_every_order<Model>({.slots = 2, .callers = 2}));
    expect_no_failure(calls_in_every_order<Model>({.slots = 1, .callers = 2}));
}

TEST(CallsEveryOrder, a_late_answer_stays_in_the_slot_of_its_call) {
    expect_no_failure(calls_in_every_order<Model>({.each = 2, .late = 1}));
    expect_no_failure(calls_in_every_order<Model>({.slots = 2, .each = 3, .late = 1}));
}

TEST(CallsEveryOrder, control_weakened_platforms_are_found) {
    const CallCase example{.slots = 2, .callers = 2};
    const auto failure = [&]<class P>() { return calls_in_every_order<P>(example).failure; };
    EXPECT_NE(failure.operator()<ModelOf<Broken::release_of_stores>>().find("without order"), std::string::npos);
    EXPECT_NE(failure.operator()<ModelOf<Broken::acquire_of_loads>>().find("without order"), std::string::npos);
    EXPECT_NE(failure.operator()<ModelOf<Broken::one_step_of_exchanges>>(), "");
}

}  // namespace
}  // namespace penstock::ondevice
