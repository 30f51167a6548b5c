// The watchdog of tests ends a program in which nothing is done any more, and no other.
#include "ondevice/watchdog_rig.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

namespace penstock::ondevice {
namespace {

constexpr std::chrono::milliseconds kPatience{100};

// A program that does something every few milliseconds for `busy`, and then waits for ever.
[[noreturn]] void work_then_hang(std::chrono::milliseconds busy) {
    ::alarm(60);
    std::atomic<unsigned long long> done{0};
    const Watchdog watchdog(done, kPatience);
    const auto end = std::chrono::steady_clock::now() + busy;
    while (std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        ++done;
    }
    for (;;) ::pause();
}

TEST(WatchdogDeathTest, a_program_that_hangs_is_ended) {
    EXPECT_EXIT(work_then_hang({}), testing::KilledBySignal(SIGABRT), "nothing done for 100 ms");
}
TEST(WatchdogDeathTest, a_program_that_hangs_later_is_ended_too) {
    EXPECT_EXIT(work_then_hang(3 * kPatience), testing::KilledBySignal(SIGABRT), "nothing done for 100 ms");
}

TEST(WatchdogTest, control_a_program_in_which_something_is_done_goes_on) {
    std::atomic<unsigned long long> done{0};
    std::atomic<bool> over{false};
    std::thread works([&] {
        for (; !over; std::this_thread::yield()) ++done;
    });
    {
        const Watchdog watchdog(done, kPatience);
        std::this_thread::sleep_for(3 * kPatience);
    }
    over = true;
    works.join();
}

}  // namespace
}  // namespace penstock::ondevice
