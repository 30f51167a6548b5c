// DeviceCalls over the emulated device: what a program of C++ does with it, and how it ends.
#include "penstock/device_calls.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

#include "penstock/ondevice/calls.hpp"

namespace penstock {
namespace {

Context emulated() { return Context(ContextOptions{.device = "host"}); }

TEST(DeviceCalls, device_code_calls_by_number_and_name_and_errors_outlive_the_close) {
    const Context context = emulated();
    const DeviceCalls calls(context);
    const std::uint32_t twice =
        calls.add("twice", [](const HostCall& call) { return HostAnswer{std::int64_t(call.value) * 2, 0}; });
    calls.add("bad", [](const HostCall&) -> HostAnswer { throw std::runtime_error("lost"); });
    ASSERT_EQ(calls.number("twice"), twice);
    EXPECT_EQ(calls.ref()->call(twice, 21).value, 42);
    EXPECT_EQ(calls.ref()->call(calls.number("bad"), 0).status, ondevice::Status::failed);
    calls.close();
    calls.close();
    EXPECT_EQ(calls.statistics().calls, 2u);
    ASSERT_EQ(calls.errors().size(), 1u);
    EXPECT_EQ(calls.errors()[0].what, "lost");
    EXPECT_THROW(calls.ref(), Error);
    EXPECT_THROW(calls.number("twice"), Error);
}

TEST(DeviceCalls, what_cannot_be_is_refused_with_a_reason) {
    const Context context = emulated();
    EXPECT_THROW(DeviceCalls(context, {.slots = 0}), Error);
    EXPECT_THROW(DeviceCalls(context, {.timeout = std::chrono::seconds(0)}), Error);
    try {
        DeviceCalls(context).number("none");
        FAIL() << "it was found";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::not_found);
        EXPECT_EQ(error.info().cause, "there is no function 'none'");
    }
}

TEST(DeviceCalls, a_forked_child_is_told_and_ends) {
    const Context context = emulated();
    auto calls = std::make_unique<DeviceCalls>(context);
    const pid_t child = ::fork();
    if (child == 0) {
        int code = 1;
        try {
            calls->ref();
        } catch (const Error& error) {
            code = error.code() == ErrorCode::unsupported ? 0 : 2;
        }
        calls.reset();
        ::_exit(code);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace penstock
