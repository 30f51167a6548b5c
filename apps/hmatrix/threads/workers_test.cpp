// The pool: every item is done once whatever its cost, exceptions reach the caller, short loops stay cheap, and a
// system that refuses threads does no harm.
#include "hmatrix/threads/workers.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <stdexcept>

#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

TEST(Workers, each_item_is_done_once_by_a_worker_that_there_is) {
    for (const int threads : {1, 2, 5}) {
        Workers workers(threads);
        ASSERT_EQ(workers.count(), threads);
        for (const std::int64_t items : {0, 1, 2, 37, 1000}) {
            std::vector<std::atomic<int>> seen(items);
            std::vector<std::atomic<int>> inside(threads);  // a worker does one item at a time
            workers.for_each(items, [&](int worker, std::int64_t i) {
                ASSERT_GE(worker, 0);
                ASSERT_LT(worker, threads);
                EXPECT_EQ(inside[worker]++, 0);
                ++seen[i];
                --inside[worker];
            });
            for (const auto& count : seen) ASSERT_EQ(count, 1);
        }
    }
}

TEST(Workers, plain_memory_written_by_items_is_seen_by_the_caller_and_the_next_loop) {
    Workers workers(3);
    std::vector<int> sums(64);
    for (int round = 1; round <= 2000; ++round) {
        workers.for_each(64, [&](int, std::int64_t i) { sums[i] += static_cast<int>(i); });
        for (int i = 0; i < 64; ++i) ASSERT_EQ(sums[i], round * i);
    }
}

TEST(Workers, what_an_item_throws_reaches_the_caller_and_the_pool_lives_on) {
    for (const int threads : {1, 2, 5}) {
        Workers workers(threads);
        std::atomic<int> done = 0;
        const auto third_throws = [&](int, std::int64_t i) {
            if (i == 3) throw std::runtime_error("third");
            ++done;
        };
        EXPECT_THROW(workers.for_each(100000, third_throws), std::runtime_error);
        EXPECT_LT(done, 100000) << "the loop ends early";
        const auto all_throw = [](int, std::int64_t) { throw std::runtime_error("each"); };
        EXPECT_THROW(workers.for_each(1000, all_throw), std::runtime_error);
        std::atomic<int> after = 0;
        workers.for_each(10, [&](int, std::int64_t) { ++after; });
        EXPECT_EQ(after, 10);
    }
}

// Sixteen threads on few cores: a loop that waited for each of them to wake would take a scheduler turn for each.
TEST(Workers, a_loop_of_nothing_much_does_not_wait_for_sleepers) {
    Workers workers(16);
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 500; ++i) workers.for_each(2, [](int, std::int64_t) {});
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

TEST(Workers, counts_that_make_no_sense_are_refused) {
    for (const int count : {-1, Workers::kMost + 1}) {
        try {
            const Workers workers(count);
            FAIL() << count;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
            EXPECT_NE(error.info().cause.find(std::to_string(count)), std::string::npos);
        }
    }
    EXPECT_GE(Workers().count(), 1);
}

TEST(Workers, fewer_threads_than_wanted_do_the_same_work) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "a sanitizer needs more address space than this test leaves";
#endif
    const pid_t child = ::fork();
    if (child == 0) {
        rlimit few{};
        // Bytes of address space: enough for the 8 MiB stacks of some threads only.
        few.rlim_cur = few.rlim_max = std::uint64_t{1} << 28;
        ::setrlimit(RLIMIT_AS, &few);
        Workers workers(400);
        std::atomic<int> done = 0;
        workers.for_each(1000, [&](int, std::int64_t) { ++done; });
        ::_exit(done == 1000 && workers.count() < 400 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace penstock::hmatrix
