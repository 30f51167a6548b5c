// Threads that help callers: each work is begun by no more threads than it wants, ends before run() returns, and needs
// no helper.
#include "os/threads/crew.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace penstock::os {
namespace {

// What tests learn of the threads in a work.
class Seen {
  public:
    void add() {
        const std::lock_guard lock(mutex_);
        ids_.insert(std::this_thread::get_id());
    }
    std::size_t threads() {
        const std::lock_guard lock(mutex_);
        return ids_.size();
    }

  private:
    std::mutex mutex_;
    std::set<std::thread::id> ids_;
};

TEST(Crew, all_that_are_wanted_come_and_are_the_same_in_the_next_call) {
    Crew crew;
    Seen seen;
    for (int call = 0; call < 50; ++call) {
        std::barrier<> met(8);  // a call ends only if eight threads are in the work at once
        crew.run(7, [&] {
            seen.add();
            met.arrive_and_wait();
        });
    }
    EXPECT_EQ(seen.threads(), 8u);
}

std::ptrdiff_t threads_of_process() {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
}

TEST(Crew, threads_of_which_nothing_is_asked_end_and_others_come_later) {
    Crew crew(std::chrono::milliseconds(1));
    const std::ptrdiff_t before = threads_of_process();
    for (int call = 0; call < 3; ++call) {
        std::barrier<> met(5);
        crew.run(4, [&] { met.arrive_and_wait(); });
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (threads_of_process() > before && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
        EXPECT_LE(threads_of_process(), before);
    }
}

TEST(Crew, a_call_that_wants_none_is_alone) {
    Crew crew;
    Seen seen;
    crew.run(0, [&] { seen.add(); });
    EXPECT_EQ(seen.threads(), 1u);
}

TEST(Crew, no_more_come_than_one_call_wants) {
    Crew crew;
    for (const std::size_t most : {std::size_t{1}, std::size_t{5}, std::size_t{2}}) {
        for (int call = 0; call < 200; ++call) {
            std::atomic<std::size_t> begun = 0, inside = 0;
            crew.run(most, [&] {
                ++inside;
                EXPECT_LE(++begun, most + 1);
                --inside;
            });
            EXPECT_EQ(inside, 0u) << "a thread is left in the work";
        }
    }
}

TEST(Crew, a_call_ends_without_helpers_that_another_call_has) {
    Crew crew;
    std::barrier<> met(3);
    std::atomic<bool> ended = false;
    std::thread other([&] {
        crew.run(1, [&] {
            met.arrive_and_wait();
            ended.wait(false);
        });
    });
    met.arrive_and_wait();  // with the other caller and with the only helper
    int calls = 0;
    crew.run(1, [&] { ++calls; });
    EXPECT_EQ(calls, 1);
    ended = true;
    ended.notify_all();
    other.join();
}

TEST(Crew, many_callers_have_their_work_done_at_once) {
    Crew crew;
    constexpr int kCallers = 6, kCalls = 200, kItems = 50;
    std::vector<std::thread> callers;
    for (int caller = 0; caller < kCallers; ++caller) {
        callers.emplace_back([&] {
            for (int call = 0; call < kCalls; ++call) {
                std::vector<std::atomic<int>> times(kItems);
                std::atomic<std::size_t> next = 0;
                crew.run(3, [&] {
                    for (std::size_t at = next++; at < kItems; at = next++) {
                        ++times[at];
                        std::this_thread::yield();  // others come meanwhile
                    }
                });
                for (const std::atomic<int>& one : times) EXPECT_EQ(one, 1);
            }
        });
    }
    for (std::thread& caller : callers) caller.join();
}

TEST(Crew, a_work_may_call_for_help_itself) {
    Crew crew;
    std::atomic<int> inner = 0, outer = 0;
    crew.run(2, [&] {
        ++outer;
        crew.run(2, [&] { ++inner; });
    });
    EXPECT_GE(outer, 1);
    EXPECT_GE(inner, outer.load());
}

}  // namespace
}  // namespace penstock::os
