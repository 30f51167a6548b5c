// Tests of what threads of a program leave for askers: each piece is taken once, and close waits for who is at work.
// Tried with them: askers.
#include "preload/ask/asked.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace preload {
namespace {

TEST(Asked, a_span_is_taken_in_pieces_once) {
    Asked asked;
    asked.leave({4 * kMiB, 5 * kMiB});
    asked.leave({9 * kMiB, kMiB});
    std::vector<Span> taken;
    for (Span span = asked.take(); !span.empty(); span = asked.take()) taken.push_back(span);
    ASSERT_EQ(taken.size(), 3u);
    EXPECT_EQ(taken.front().offset, 4 * kMiB);
    EXPECT_EQ(taken.back().end(), 10 * kMiB);
}

TEST(Asked, a_span_elsewhere_replaces_what_is_left) {
    Asked asked;
    asked.leave({0, 8 * kMiB});
    asked.take();
    asked.leave({100 * kMiB, 2 * kMiB});
    EXPECT_EQ(asked.take().offset, 100 * kMiB);
    EXPECT_TRUE(asked.take().empty());
}

TEST(Asked, askers_at_once_take_each_piece_once) {
    constexpr int kPieces = 2000;
    Asked asked;
    std::vector<std::atomic<int>> taken(kPieces);
    std::atomic<int> left{kPieces};
    const auto ask = [&] {
        while (left.load() > 0) {
            const Span span = asked.take();
            if (span.empty()) continue;
            taken[static_cast<std::size_t>(span.offset / kPieceBytes)].fetch_add(1);
            left.fetch_sub(1);
        }
    };
    std::thread first(ask), second(ask);
    for (int i = 0; i < kPieces; ++i) asked.leave({i * kPieceBytes, kPieceBytes});
    first.join();
    second.join();
    for (const std::atomic<int>& times : taken) EXPECT_EQ(times.load(), 1);
}

// All orders of the steps of one asker and one close: enter is add, look; close is end, look. An asker never works on a
// descriptor for which close has found none at work.
TEST(AtWork, close_and_an_asker_see_each_other_in_every_order) {
    for (int order = 0; order < 16; ++order) {
        int workers = 0, asker = 0, closer = 0;
        bool open = true, works = false, found_none = false;
        for (int step = 0; step < 4; ++step) {
            const bool of_asker = ((order >> step & 1) != 0 && asker < 2) || closer == 2;
            if (of_asker && asker++ == 0) ++workers;
            else if (of_asker) works = open;
            else if (closer++ == 0) open = false;
            else found_none = workers == 0;
        }
        EXPECT_FALSE(works && found_none) << order;
    }
}

TEST(AtWork, close_waits_for_an_asker_that_entered_and_lets_none_in) {
    AtWork at_work;
    at_work.begin();
    ASSERT_TRUE(at_work.enter());
    at_work.end();
    EXPECT_TRUE(at_work.busy());
    EXPECT_FALSE(at_work.enter());
    at_work.leave();
    EXPECT_FALSE(at_work.busy());
}

TEST(AtWork, no_asker_works_for_a_number_after_its_close) {
    constexpr int kRounds = 500;
    AtWork at_work;
    std::atomic<int> number{0};  // 0: closed, and perhaps another file's
    std::atomic<bool> done{false};
    std::atomic<int> wrong{0};
    const auto ask = [&] {
        while (!done.load()) {
            if (!at_work.enter()) continue;
            if (number.load() == 0) wrong.fetch_add(1);
            at_work.leave();
        }
    };
    std::thread first(ask), second(ask);
    for (int i = 0; i < kRounds; ++i) {
        number.store(1);
        at_work.begin();
        std::this_thread::yield();
        at_work.end();
        while (at_work.busy()) std::this_thread::yield();
        number.store(0);
    }
    done.store(true);
    first.join();
    second.join();
    EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace preload
