// In which order jobs are served: teams one after the other, other jobs in turn, and a cancelled job does not wait.
#include "engine/jobs/scheduler.hpp"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "engine/memory_rig.hpp"
#include "support/sanitized.hpp"

namespace penstock::engine {
namespace {

using test::EngineOverMemory;
using test::random_bytes;

double thread_cpu_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The workers of one job share its slots: workers on several jobs would each need slots of their own.
TEST_F(EngineOverMemory, workers_that_share_slots_gather_on_one_job_and_others_spread) {
    store_->put(1, random_bytes(kMiB, 5));
    std::byte* memory = device_bytes(kMiB);
    for (const bool shared : {true, false}) {
        Scheduler scheduler;
        const Shape shape{.chunk_bytes = 64 * kKiB, .part_bytes = shared ? 16 * kKiB : 0, .workers = 3};
        const auto job = [&] {
            return std::make_shared<Job>(transfer(Direction::read, {{&file_, 0, memory, kMiB, 0}}, shape), 0,
                                         CutRules{.chunk_bytes = 64 * kKiB});
        };
        const auto first = job();
        const auto second = job();
        scheduler.add(first);
        scheduler.add(second);
        EXPECT_EQ(scheduler.take(), first);
        EXPECT_EQ(scheduler.take(), shared ? first : second);
        EXPECT_EQ(scheduler.take(), first);
        EXPECT_EQ(scheduler.take(), second);
        scheduler.give_back(first);  // the worker's quantum is over: the other job's turn
        EXPECT_EQ(scheduler.take(), second);
        scheduler.stop();
    }
}

TEST_F(EngineOverMemory, a_job_of_another_kind_does_not_wait_for_all_that_share_slots) {
    store_->put(1, random_bytes(kMiB, 5));
    std::byte* memory = device_bytes(kMiB);
    Scheduler scheduler;
    const auto job = [&](std::uint64_t part_bytes) {
        const Shape shape{.chunk_bytes = 64 * kKiB, .part_bytes = part_bytes, .workers = 3};
        return std::make_shared<Job>(transfer(Direction::read, {{&file_, 0, memory, kMiB, 0}}, shape), 0,
                                     CutRules{.chunk_bytes = 64 * kKiB});
    };
    const auto first = job(16 * kKiB);
    scheduler.add(first);
    scheduler.add(job(16 * kKiB));
    const auto small = job(0);
    scheduler.add(small);
    EXPECT_EQ(scheduler.take(), first);
    EXPECT_EQ(scheduler.take(), small);
    EXPECT_EQ(scheduler.take(), first);
    scheduler.stop();
}

// Were workers woken in turn, each would make a path and slots of its own, which one of them has already.
TEST_F(EngineOverMemory, a_job_wakes_the_worker_that_has_served_its_path_and_was_busy_last) {
    store_->put(1, random_bytes(kMiB, 5));
    std::byte* memory = device_bytes(kMiB);
    Scheduler scheduler;
    constexpr int kWorkers = 4;
    std::atomic<int> jobs_done[kWorkers] = {};
    std::vector<std::thread> workers;
    const auto wait_for_idle = [&](std::size_t count) {
        while (scheduler.idle_workers() < count) std::this_thread::yield();
    };
    for (int i = 0; i < kWorkers; ++i) {  // number 1 has served the path, and 3 becomes idle last
        workers.emplace_back([&, i] {
            PathSet served;
            served.set(static_cast<std::size_t>(PathKind::memory), i == 1);
            while (const std::shared_ptr<Job> job = scheduler.take(served)) {
                Chunk chunk;
                while (job->next(chunk)) job->finish_chunk();
                ++jobs_done[i];
                scheduler.give_back(job);
            }
        });
        wait_for_idle(static_cast<std::size_t>(i) + 1);
    }
    const auto run = [&](PathKind path) {
        Plan plan = transfer(Direction::read, {{&file_, 0, memory, kMiB, 0}}, {.workers = 1})->plan();
        plan.steps[0].shape.path = path;
        TransferRequest request;
        request.ranges = {{&file_, 0, memory, kMiB, 0}};
        const auto job = std::make_shared<Job>(
            std::make_shared<TransferState>(std::move(request), std::move(plan)), 0, CutRules{.chunk_bytes = kMiB});
        scheduler.add(job);
        job->transfer().result();
        wait_for_idle(kWorkers);
    };
    for (int i = 0; i < 20; ++i) run(PathKind::memory);
    EXPECT_EQ(jobs_done[1], 20);
    for (int i = 0; i < 20; ++i) run(PathKind::null);
    EXPECT_EQ(jobs_done[1], 40);  // no worker has served that path: the one that was busy last comes
    scheduler.stop();
    for (std::thread& worker : workers) worker.join();
}

// Ten times the jobs take ten times the work of this thread. If each search passed all waiting jobs, it would be a
// hundred times. The test takes the least of several CPU times: other programs on the machine do not count.
TEST_F(EngineOverMemory, a_long_queue_is_served_in_linear_time) {
    store_->put(1, random_bytes(kMiB, 5));
    std::byte* memory = device_bytes(kMiB);
    const auto seconds_of = [&](int count) {
        Scheduler scheduler;
        const Shape shape{.chunk_bytes = 64 * kKiB, .workers = 1};
        for (int i = 0; i < count; ++i) {
            scheduler.add(std::make_shared<Job>(transfer(Direction::read, {{&file_, 0, memory, 4096, 0}}, shape), 0,
                                                CutRules{.chunk_bytes = 64 * kKiB}));
        }
        const double start = thread_cpu_seconds();
        for (int i = 0; i < count; ++i) {
            const std::shared_ptr<Job> job = scheduler.take();
            Chunk chunk;
            while (job->next(chunk)) job->finish_chunk();
            scheduler.give_back(job);
        }
        return thread_cpu_seconds() - start;
    };
    const int count = penstock::test::some_of(2000);
    double few = seconds_of(count);
    double many = seconds_of(10 * count);
    for (int i = 0; i < 4; ++i) {
        few = std::min(few, seconds_of(count));
        many = std::min(many, seconds_of(10 * count));
    }
    EXPECT_LT(many, 40 * few);
}

// The only worker is busy for seconds: a job that waits for it ends when it is told to, not when the worker is free.
TEST_F(EngineOverMemory, a_queued_transfer_that_is_cancelled_or_late_ends_while_the_one_before_runs) {
    make_slow_engine(16e6, 64 * kMiB);
    store_->put(1, random_bytes(32 * kMiB, 6));
    const Shape shape{.chunk_bytes = 256 * kKiB, .workers = 1};
    const auto large = transfer(Direction::read, {{&file_, 0, device_bytes(32 * kMiB), 32 * kMiB, 0}}, shape);
    const Shape other{.chunk_bytes = 128 * kKiB, .workers = 1};
    const auto cancelled = transfer(Direction::read, {{&file_, 0, device_bytes(kMiB), kMiB, 0}}, other);
    const auto plain = transfer(Direction::read, {{&file_, 0, device_bytes(kMiB), kMiB, 0}}, other);
    TransferRequest limited = plain->request();
    limited.deadline = Deadline::after(std::chrono::milliseconds(1));
    const auto late = std::make_shared<TransferState>(std::move(limited), plain->plan());
    engine_->start(large);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    engine_->start(late);
    engine_->start(cancelled);
    engine_->cancel(*cancelled);
    EXPECT_TRUE(cancelled->done());  // at once, on this thread
    EXPECT_EQ(cancelled->result().error.code, ErrorCode::cancelled);
    EXPECT_TRUE(late->wait(Deadline::after(std::chrono::milliseconds(500))));
    EXPECT_EQ(late->result().error.code, ErrorCode::timed_out);
    EXPECT_FALSE(large->done());
    engine_->cancel(*large);
    EXPECT_TRUE(large->wait(Deadline::after(std::chrono::seconds(10))));
}

}  // namespace
}  // namespace penstock::engine
