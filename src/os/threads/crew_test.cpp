// Threads that help callers: each work is begun by no more threads than it wants, ends before run() returns, and needs
// no helper.
#include "os/threads/crew.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <new>
#include <set>
#include <thread>
#include <vector>

namespace {

std::atomic<bool> others_get_no_memory{false};
thread_local bool is_test = false;  // this thread gets memory

}  // namespace

// Of this program: as the system's, but where a test says that there is no memory.
void* operator new(std::size_t bytes) {
    void* const memory = others_get_no_memory && !is_test ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

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

// A system that has no memory left for a moment is no reason to end the program.
TEST(Crew, a_thread_ends_and_is_joined_without_memory) {
    Crew crew(std::chrono::milliseconds(1));
    const std::ptrdiff_t before = threads_of_process();
    std::barrier<> met(5);
    is_test = true;
    crew.run(4, [&] {
        met.arrive_and_wait();
        others_get_no_memory = true;
    });
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (threads_of_process() > before && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    std::atomic<int> calls = 0;
    is_test = false;
    EXPECT_THROW(crew.run(1, [&] { ++calls; }), std::bad_alloc);
    others_get_no_memory = false;
    EXPECT_EQ(calls, 0);
    crew.run(1, [&] { ++calls; });
    EXPECT_GE(calls, 1);
}

std::vector<int> cpus_of_this_thread() {
    cpu_set_t set;
    std::vector<int> found;
    if (::sched_getaffinity(0, sizeof set, &set) != 0) return found;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &set)) found.push_back(cpu);
    }
    return found;
}

void bind_to(const std::vector<int>& cpus) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int cpu : cpus) CPU_SET(cpu, &set);
    ASSERT_EQ(::sched_setaffinity(0, sizeof set, &set), 0);
}

TEST(Crew, threads_run_on_the_cpus_of_the_caller_that_has_them) {
    const std::vector<int> all = cpus_of_this_thread();
    if (all.size() < 2) GTEST_SKIP() << "needs two CPUs";
    Crew crew;
    for (const std::vector<int>& cpus : {all, {all.front()}, {all.back()}, all}) {
        bind_to(cpus);
        std::barrier<> met(3);
        crew.run(2, [&] {
            met.arrive_and_wait();
            EXPECT_EQ(cpus_of_this_thread(), cpus);
        });
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
