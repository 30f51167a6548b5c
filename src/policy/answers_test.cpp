// look() returns what keep() was given, also when many threads call both at once.
#include "policy/answers.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace penstock::policy {
namespace {

CostQuestion about(std::uint64_t bytes, bool cached = true) {
    CostQuestion question;
    question.bytes = bytes;
    question.cached = cached;
    return question;
}

PathCosts answer_to(const CostQuestion& question) {
    PathCosts costs;
    costs.count = 1 + question.bytes % 3;
    for (std::size_t i = 0; i < costs.count; ++i) costs.found[i].seconds = static_cast<double>(question.bytes + i);
    return costs;
}

bool same(const PathCosts& one, const PathCosts& other) {
    if (one.count != other.count) return false;
    for (std::size_t i = 0; i < one.count; ++i) {
        if (one.found[i].seconds != other.found[i].seconds) return false;
    }
    return true;
}

TEST(Answers, only_the_very_question_is_answered) {
    Answers answers;
    PathCosts found;
    EXPECT_FALSE(answers.look(about(0), found)) << "an empty entry is no answer";
    answers.keep(about(4096), answer_to(about(4096)));
    ASSERT_TRUE(answers.look(about(4096), found));
    EXPECT_TRUE(same(found, answer_to(about(4096))));
    EXPECT_FALSE(answers.look(about(4096, false), found));
    CostQuestion synced = about(4096);
    synced.synced = true;  // another question that uses the same entry
    EXPECT_FALSE(answers.look(synced, found));
}

TEST(Answers, threads_never_see_half_an_answer) {
    Answers answers;
    std::atomic<int> wrong{0}, hits{0};
    std::vector<std::thread> threads;
    for (std::uint64_t thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&, thread] {
            for (std::uint64_t turn = 0; turn < 20'000; ++turn) {
                const CostQuestion question = about(1 + (turn * (thread + 3)) % 97);
                PathCosts found;
                if (answers.look(question, found)) {
                    ++hits;
                    if (!same(found, answer_to(question))) ++wrong;
                } else {
                    answers.keep(question, answer_to(question));
                }
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_GT(hits, 0);
}

}  // namespace
}  // namespace penstock::policy
