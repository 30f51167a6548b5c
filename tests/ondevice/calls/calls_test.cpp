// Calls of functions on host threads: they reach their function and bring its answer back, in time or with a status.
// Tried with them: function_table, shared_object, call_service.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "ondevice/calls/calls_rig.hpp"
#include "penstock/error.hpp"

namespace penstock::ondevice {
namespace {

u64 soon(u64 ms) { return Native::now_ns() + ms * 1'000'000; }

// Answers with the argument, each byte one more; the result is the value doubled.
HostAnswer one_more(const HostCall& call) {
    const std::size_t bytes = std::min(call.argument.size(), call.answer.size());
    for (std::size_t i = 0; i < bytes; ++i) call.answer[i] = static_cast<std::byte>(u8(call.argument[i]) + 1);
    return {static_cast<std::int64_t>(call.value * 2), bytes};
}

// Functions that wait until the test lets them go on.
struct Gate {
    std::atomic<bool> open{false};
    std::atomic<u32> inside{0};
    HostAnswer wait(const HostCall& call) {
        ++inside;
        while (!open) std::this_thread::yield();
        if (!call.answer.empty()) call.answer[0] = std::byte{0xee};
        return {static_cast<std::int64_t>(call.value), call.answer.empty() ? 0u : 1u};
    }
};

TEST(Calls, a_function_gets_its_argument_and_its_answer_comes_back) {
    CallsRig rig;
    const u32 number = rig.add("one more", one_more);
    const u8 argument[5] = {1, 2, 3, 4, 5};
    u8 answer[8] = {};
    const CallEnd end = rig.calls().call({number, 21, argument, 5, answer, 8});
    EXPECT_EQ(end.status, Status::ok);
    EXPECT_EQ(end.value, 42);
    EXPECT_EQ(end.answer_bytes, 5u);
    EXPECT_EQ(std::memcmp(answer, "\2\3\4\5\6\0\0\0", 8), 0);
    EXPECT_EQ(rig.calls().call(number, 4).value, 8) << "a number alone";
    EXPECT_EQ(rig.service().calls(), 2u);
}

TEST(Calls, the_longest_argument_and_answer_fit_and_longer_ones_are_invalid) {
    CallsRig rig({4, 512});
    const u32 number = rig.add("one more", one_more);
    const CallsRef calls = rig.calls();
    ASSERT_EQ(calls.room(), 512u - 16);
    std::vector<u8> argument(calls.room() + 1, 7), answer(calls.room() + 1, 0);
    const CallEnd end = calls.call({number, 0, argument.data(), calls.room(), answer.data(), calls.room()});
    EXPECT_EQ(end.answer_bytes, calls.room());
    EXPECT_EQ(std::vector<u8>(calls.room(), 8), std::vector<u8>(answer.begin(), answer.end() - 1));
    EXPECT_EQ(answer.back(), 0);
    EXPECT_EQ(calls.call({number, 0, argument.data(), calls.room() + 1}).status, Status::invalid);
    EXPECT_EQ(calls.call({most_functions, 0}).status, Status::invalid);
    EXPECT_EQ(rig.service().calls(), 1u) << "those were not sent";
    u32 slots = 0;
    for (u32 ticket = 0; calls.channel.claim(ticket) == Status::ok;) ++slots;
    EXPECT_EQ(slots, 4u) << "a refused call keeps no slot";
}

TEST(Calls, a_number_that_nobody_has_is_invalid) {
    CallsRig rig;
    for (const u32 number : {first_registered - 1, first_registered, most_functions - 1}) {
        const CallEnd end = rig.calls().call(number, 0);
        EXPECT_EQ(end.status, Status::invalid) << number;
        EXPECT_LT(end.value, 0);
    }
}

TEST(Calls, functions_are_found_by_name) {
    CallsRig rig;
    rig.add("first", one_more);
    const u32 second = rig.add("second", one_more);
    u32 found = 0;
    EXPECT_EQ(rig.calls().find("second", found), Status::ok);
    EXPECT_EQ(found, second);
    EXPECT_EQ(rig.calls().find("third", found), Status::invalid);
    EXPECT_EQ(rig.calls().find("", found), Status::invalid);
    EXPECT_EQ(found, second) << "it stays as it was";
    EXPECT_THROW(rig.add("second", one_more), Error);
    EXPECT_THROW(rig.add("", one_more), Error);
    EXPECT_THROW(rig.add("nothing", HostFunction()), Error);
}

TEST(Calls, a_function_that_throws_gives_a_status_and_is_kept) {
    CallsRig rig;
    const u32 number = rig.add("bad", [](const HostCall& call) -> HostAnswer {
        if (call.value == 1) throw std::runtime_error("no such particle");
        if (call.value == 2) throw 7;
        return {0, call.value == 3 ? call.answer.size() + 1 : 0};
    });
    u8 answer = 9;
    for (u64 value = 1; value <= 3; ++value) {
        const CallEnd end = rig.calls().call({number, value, nullptr, 0, &answer, 1});
        EXPECT_EQ(end.status, Status::failed) << value;
        EXPECT_EQ(end.answer_bytes, 0u);
    }
    EXPECT_EQ(answer, 9);
    EXPECT_EQ(rig.calls().call(number, 0).status, Status::ok) << "the thread lives";
    EXPECT_EQ(rig.service().failures(), 3u);
    const auto failed = rig.service().failed();
    ASSERT_EQ(failed.size(), 3u);
    EXPECT_EQ(failed[0].function, "bad");
    EXPECT_EQ(failed[0].what, "no such particle");
    for (int more = 0; more < 62; ++more) rig.calls().call(number, 1);
    EXPECT_EQ(rig.service().failed().size(), 64u) << "the first ones";
    EXPECT_EQ(rig.service().failures(), 65u);
}

TEST(Calls, a_call_of_a_dead_service_ends_at_its_deadline) {
    CallsRig rig({2, 512});
    const u32 number = rig.add("one more", one_more);
    rig.service().end();
    const CallsRef calls = rig.calls(2'000'000);
    EXPECT_EQ(calls.call(number, 1).status, Status::timed_out);
    EXPECT_EQ(calls.call(number, 1).status, Status::timed_out);
    EXPECT_EQ(calls.call(number, 1).status, Status::busy) << "no slot comes back any more";
    EXPECT_EQ(calls.print(0, "x").status, Status::busy);
}

TEST(Calls, what_waits_when_the_service_ends_is_cancelled) {
    Gate gate;
    CallsRig rig({8, 512}, {.threads = 1});
    const u32 number = rig.add("wait", [&](const HostCall& call) { return gate.wait(call); });
    const CallsRef calls = rig.calls();
    u32 first = 0, second = 0;
    u8 answer = 5;
    ASSERT_EQ(calls.post({number, 1}, first), Status::ok);
    while (gate.inside == 0) std::this_thread::yield();
    ASSERT_EQ(calls.post({number, 2, nullptr, 0, &answer, 1}, second), Status::ok);
    std::thread ends([&] { rig.service().end(); });
    while (!rig.service().ending()) std::this_thread::yield();
    gate.open = true;
    EXPECT_EQ(calls.take(first, nullptr, 0, soon(30'000)).value, 1);
    const CallEnd end = calls.take(second, &answer, 1, soon(30'000));
    ends.join();
    EXPECT_EQ(end.status, Status::cancelled);
    EXPECT_EQ(end.answer_bytes, 0u);
    EXPECT_EQ(answer, 5);
}

TEST(Calls, a_late_answer_does_not_come_to_the_next_call) {
    Gate gate;
    CallsRig rig({1, 512}, {.threads = 1});
    const u32 number = rig.add("wait", [&](const HostCall& call) { return gate.wait(call); });
    const u32 next = rig.add("one more", one_more);
    const CallsRef calls = rig.calls();
    u8 late = 1, answer[2] = {0, 0};
    EXPECT_EQ(calls.call({number, 1, nullptr, 0, &late, 1}, soon(2)).status, Status::timed_out);
    EXPECT_EQ(calls.call({next, 1}, soon(2)).status, Status::busy) << "its slot is the host's still";
    gate.open = true;
    const CallEnd end = calls.call({next, 8, "ab", 2, answer, 2});
    EXPECT_EQ(end.value, 16);
    EXPECT_EQ(std::memcmp(answer, "bc", 2), 0);
    EXPECT_EQ(late, 1) << "no lane waits for it any more";
}

TEST(Calls, a_full_mailbox_is_waited_for) {
    Gate gate;
    CallsRig rig({2, 512}, {.threads = 1});
    const u32 number = rig.add("wait", [&](const HostCall& call) { return gate.wait(call); });
    const CallsRef calls = rig.calls();
    u32 tickets[2];
    for (u32& ticket : tickets) ASSERT_EQ(calls.post({number, 3}, ticket), Status::ok);
    EXPECT_EQ(calls.call({number, 4}, soon(2)).status, Status::busy);
    std::thread waits([&] { EXPECT_EQ(calls.call(number, 5).value, 5); });
    gate.open = true;
    for (const u32 ticket : tickets) EXPECT_EQ(calls.take(ticket, nullptr, 0, soon(30'000)).value, 3);
    waits.join();
}

TEST(Calls, a_call_that_is_told_is_carried_out_and_gives_its_slot_back) {
    std::atomic<u64> sum{0};
    CallsRig rig({2, 512});
    const u32 number = rig.add("add", [&](const HostCall& call) {
        sum += call.value;
        return HostAnswer{};
    });
    for (u64 value = 1; value <= 20; ++value) ASSERT_EQ(rig.calls().tell({number, value}), Status::ok);
    rig.calls().call(number, 0);
    while (sum != 210) std::this_thread::yield();
    u32 tickets[2];
    for (u32& ticket : tickets) {
        while (rig.calls().channel.claim(ticket) != Status::ok) std::this_thread::yield();
    }
}

TEST(Calls, a_thread_in_a_long_function_holds_up_no_other_call) {
    Gate gate;
    CallsRig rig({64, 512}, {.threads = 2});
    const u32 number = rig.add("wait", [&](const HostCall& call) { return gate.wait(call); });
    const u32 quick = rig.add("one more", one_more);
    u32 ticket = 0;
    ASSERT_EQ(rig.calls().post({number, 1}, ticket), Status::ok);
    while (gate.inside == 0) std::this_thread::yield();
    for (int turn = 0; turn < 70; ++turn) ASSERT_EQ(rig.calls().call(quick, 3).value, 6);  // in all slots
    gate.open = true;
    EXPECT_TRUE(rig.calls().take(ticket, nullptr, 0, soon(30'000)).ok());
}

TEST(Calls, many_callers_get_their_own_answers) {
    CallsRig rig({16, 512}, {.threads = 3});
    const u32 number = rig.add("one more", one_more);
    std::vector<std::thread> callers;
    std::atomic<u32> wrong{0};
    for (u32 caller = 0; caller < 4; ++caller) {
        callers.emplace_back([&, caller] {
            const CallsRef calls = rig.calls();
            for (u32 turn = 0; turn < 60; ++turn) {
                u32 argument = caller << 24 | turn << 8, answer = 0;
                const CallEnd end = calls.call({number, caller + turn, &argument, 4, &answer, 4});
                for (int byte = 0; byte < 4; ++byte) reinterpret_cast<u8*>(&argument)[byte] += 1;
                wrong += end.value != 2 * (caller + turn) || answer != argument || end.answer_bytes != 4;
            }
        });
    }
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(rig.service().calls(), 240u);
}

TEST(Calls, what_cannot_be_is_refused) {
    EXPECT_THROW(CallsRig({4, 512}, {.threads = 0}), Error);
    EXPECT_THROW(CallsRig({4, 512}, {.threads = 65}), Error);
    EXPECT_THROW(CallsRig({4, 512}, {.files = 0}), Error);
    EXPECT_THROW(CallsRig({4, 512}, {.files = 65537}), Error);
    EXPECT_THROW(CallsRig({4, 16}), Error);
    EXPECT_THROW(CallsRig({4, 520}), Error);
}

#if defined(HOST_FUNCTIONS)
TEST(Calls, functions_of_a_shared_object_are_called_by_name) {
    CallsRig rig;
    rig.service().functions().install(HOST_FUNCTIONS);
    const CallsRef calls = rig.calls();
    u32 number = 0, again = 0;
    ASSERT_EQ(calls.find("reversed", number), Status::ok);
    ASSERT_EQ(calls.find("reversed", again), Status::ok);
    EXPECT_EQ(number, again);
    char answer[8] = {};
    const CallEnd end = calls.call({number, 5, "abc", 3, answer, 8});
    EXPECT_EQ(end.value, 8);
    EXPECT_EQ(end.answer_bytes, 3u);
    EXPECT_STREQ(answer, "cba");
    EXPECT_EQ(calls.find("system", number), Status::invalid) << "a function of the C library is not the object's own";
    EXPECT_EQ(calls.find("strlen", number), Status::invalid);
    EXPECT_THROW(rig.service().functions().install("/nowhere/lib.so"), Error);
}
#endif

}  // namespace
}  // namespace penstock::ondevice
