// Predictions from profiles agree with measured sizes and follow them in between and beyond. Rows that differ from the
// question do not answer if equal ones exist.
#include "policy/costs.hpp"

#include <gtest/gtest.h>

namespace penstock::policy {
namespace {

ProfileRow row(PathKind path, std::uint64_t bytes, double seconds) {
    ProfileRow row;
    row.cached = true;
    row.path = path;
    row.bytes = bytes;
    row.seconds = seconds;
    row.samples = 3;
    return row;
}

CostQuestion about(std::uint64_t bytes) {
    CostQuestion question;
    question.cached = true;
    question.bytes = bytes;
    return question;
}

Costs of(std::vector<ProfileRow> rows) {
    Profile profile;
    profile.rows = std::move(rows);
    return Costs(std::move(profile));
}

double seconds(const Costs& costs, const CostQuestion& question) {
    const PathCosts found = costs.predict(question);
    return found.count == 0 ? 0 : found.found[0].seconds;
}

TEST(Costs, measured_sizes_are_met_and_others_follow_in_logarithms) {
    const Costs costs = of({row(PathKind::buffered, 16 * kMiB, 4e-3), row(PathKind::buffered, kMiB, 1e-3)});
    EXPECT_NEAR(seconds(costs, about(kMiB)), 1e-3, 1e-9);
    EXPECT_NEAR(seconds(costs, about(16 * kMiB)), 4e-3, 1e-9);
    EXPECT_NEAR(seconds(costs, about(4 * kMiB)), 2e-3, 1e-9);
    EXPECT_NEAR(seconds(costs, about(4096)), 1e-3, 1e-9);           // the latency stays constant
    EXPECT_NEAR(seconds(costs, about(64 * kMiB)), 16e-3, 1e-8);     // the rate stays constant
    EXPECT_EQ(seconds(costs, about(0)), 0);
}

TEST(Costs, the_fastest_path_comes_first_and_each_path_once) {
    ProfileRow shaped = row(PathKind::uring, kMiB, 1e-4);
    shaped.workers = 2;
    shaped.chunk_bytes = kMiB;
    const Costs costs = of({row(PathKind::buffered, kMiB, 2e-4), row(PathKind::uring, kMiB, 3e-4), shaped});
    const PathCosts found = costs.predict(about(kMiB));
    ASSERT_EQ(found.count, 2u);
    EXPECT_EQ(found.found[0].path, PathKind::uring);
    EXPECT_EQ(found.found[0].workers, 2u);
    EXPECT_EQ(found.found[0].chunk_bytes, kMiB);
    shaped.seconds = 2.9e-4;  // 3 % faster: luck
    EXPECT_EQ(of({row(PathKind::uring, kMiB, 3e-4), shaped}).predict(about(kMiB)).found[0].workers, 0u);
    EXPECT_EQ(found.found[1].path, PathKind::buffered);
    EXPECT_TRUE(costs.has(PathKind::uring));
    EXPECT_FALSE(costs.has(PathKind::gds));
}

TEST(Costs, rows_of_another_state_kind_or_direction_do_not_answer) {
    const Costs costs = of({row(PathKind::buffered, kMiB, 1e-3)});
    CostQuestion question = about(kMiB);
    question.cached = false;
    EXPECT_EQ(costs.predict(question).count, 0u);
    question = about(kMiB);
    question.memory = MemoryKind::managed;
    EXPECT_EQ(costs.predict(question).count, 0u);
    question = about(kMiB);
    question.direction = Direction::write;
    EXPECT_EQ(costs.predict(question).count, 0u);
}

TEST(Costs, rows_of_the_same_alignment_and_first_touch_answer_where_there_are_any) {
    ProfileRow unaligned = row(PathKind::direct, kMiB, 5e-3);
    unaligned.aligned = false;
    ProfileRow by_cpu = row(PathKind::direct, kMiB, 1e-4);
    by_cpu.first_touch = FirstTouch::cpu;
    const Costs costs = of({row(PathKind::direct, kMiB, 1e-3), unaligned, by_cpu});
    CostQuestion question = about(kMiB);
    question.first_touch = FirstTouch::gpu;
    EXPECT_NEAR(seconds(costs, question), 1e-3, 1e-9);
    question.first_touch = FirstTouch::cpu;
    EXPECT_NEAR(seconds(costs, question), 1e-4, 1e-9);
    question.aligned = false;
    EXPECT_NEAR(seconds(costs, question), 5e-3, 1e-9);
}

TEST(Costs, durable_writes_are_asked_by_their_time_to_stable_storage) {
    ProfileRow cached = row(PathKind::buffered, kMiB, 1e-4);
    cached.direction = Direction::write;
    cached.synced_seconds = 9e-3;
    ProfileRow direct = cached;
    direct.path = PathKind::direct;
    direct.seconds = 1e-3;
    direct.synced_seconds = 2e-3;
    ProfileRow never_synced = cached;
    never_synced.path = PathKind::uring;
    never_synced.synced_seconds = 0;
    const Costs costs = of({cached, direct, never_synced});
    CostQuestion question = about(kMiB);
    question.direction = Direction::write;
    EXPECT_EQ(costs.predict(question).found[0].path, PathKind::buffered);
    question.synced = true;
    EXPECT_EQ(costs.predict(question).found[0].path, PathKind::direct);
    EXPECT_EQ(costs.predict(question).count, 2u);
}

TEST(Costs, a_curve_that_ends_early_does_not_answer_for_sizes_far_beyond) {
    const Costs costs = of({row(PathKind::aio, kMiB, 1e-5), row(PathKind::buffered, kMiB, 1e-3),
                            row(PathKind::buffered, kGiB, 1e-1)});
    EXPECT_EQ(costs.predict(about(4 * kMiB)).count, 2u);
    EXPECT_EQ(costs.predict(about(256 * kMiB)).count, 1u);
    EXPECT_EQ(costs.predict(about(64 * kGiB)).count, 1u);
}

TEST(Costs, corrections_turn_the_order) {
    const Costs costs = of({row(PathKind::buffered, kMiB, 1e-3), row(PathKind::mmap, kMiB, 1.5e-3)});
    const std::vector<double> factors{2.0, 1.0};
    EXPECT_EQ(costs.predict(about(kMiB)).found[0].path, PathKind::buffered);
    EXPECT_EQ(costs.predict(about(kMiB), factors).found[0].path, PathKind::mmap);
}

}  // namespace
}  // namespace penstock::policy
