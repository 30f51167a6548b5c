// Choices by rule and by measurement: a path that is measured to be faster is taken if possible, and the reason says
// so.
#include "policy/choice.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

namespace penstock::policy {
namespace {

class Measured : public testing::Test {
  protected:
    void add(bool cached, PathKind path, double seconds, Direction direction = Direction::read) {
        ProfileRow row;
        row.direction = direction;
        row.cached = cached;
        row.path = path;
        row.bytes = kGiB;
        row.seconds = seconds;
        row.samples = 5;
        profile_.rows.push_back(row);
    }
    RequestFacts request(Direction direction = Direction::read) {
        costs_ = std::make_unique<Costs>(profile_);
        RequestFacts facts;
        facts.direction = direction;
        facts.ranges = {{0, kGiB, 0}};
        facts.segments = {{{0, 0, kGiB}, Residence::hot}};
        facts.direct = true;
        facts.costs = costs_.get();
        return facts;
    }
    const MachineFacts machine_{.cpus = 16, .emulated_device = false, .uring = true, .uring_cause = {}};
    const UniformPart hot_{Residence::hot, kGiB};
    Profile profile_;
    std::unique_ptr<Costs> costs_;
};

TEST_F(Measured, the_fastest_is_taken_with_its_rival_named) {
    add(true, PathKind::buffered, 0.04);
    add(true, PathKind::uring_buffered, 0.02);
    add(true, PathKind::direct, 0.2);
    const Choice choice = choose_read(hot_, request(), machine_);
    EXPECT_EQ(choice.path, PathKind::uring_buffered);
    EXPECT_DOUBLE_EQ(choice.cost.seconds, 0.02);
    EXPECT_EQ(choice.next.path, PathKind::buffered);
    EXPECT_EQ(choice.reason, "in the page cache: the fastest measured here for this read");
}

TEST_F(Measured, of_paths_measured_too_seldom_the_rule_is_left_only_for_a_clear_gain) {
    add(true, PathKind::buffered, 0.040);
    add(true, PathKind::mmap, 0.037);
    EXPECT_EQ(choose_read(hot_, request(), machine_).path, PathKind::mmap);
    profile_.rows.back().samples = 2;
    EXPECT_EQ(choose_read(hot_, request(), machine_).path, PathKind::buffered);
    profile_.rows.back().seconds = 0.030;
    EXPECT_EQ(choose_read(hot_, request(), machine_).path, PathKind::mmap);
}

TEST_F(Measured, only_the_sizes_around_a_request_say_how_sure_its_prediction_is) {
    add(true, PathKind::buffered, 0.040);
    add(true, PathKind::mmap, 0.037);
    for (const PathKind path : {PathKind::buffered, PathKind::mmap}) {
        add(true, path, 1e-4);
        profile_.rows.back().bytes = kMiB;
        profile_.rows.back().samples = 1;
    }
    EXPECT_EQ(choose_read(hot_, request(), machine_).path, PathKind::mmap);
}

TEST_F(Measured, a_small_read_is_asked_for_its_residence_where_past_the_cache_is_clearly_faster_when_cold) {
    for (const bool cached : {true, false}) {
        add(cached, PathKind::buffered, cached ? 20e-6 : 100e-6);
        profile_.rows.back().bytes = 64 * kKiB;
        add(cached, PathKind::direct, 75e-6);
        profile_.rows.back().bytes = 64 * kKiB;
    }
    RequestFacts small = request();
    small.ranges = {{0, 64 * kKiB, 0}};
    small.segments = {{{0, 0, 64 * kKiB}, Residence::cold}};
    small.offset_alignment = 512;
    small.blocking = true;
    MachineFacts machine = machine_;
    machine.caller_direct_bytes = 512 * kKiB;
    EXPECT_FALSE(small_residence_matters(small, machine)) << "asking is dear without cachestat";
    machine.cachestat = true;
    EXPECT_TRUE(small_residence_matters(small, machine));
    const auto shape = [&] { return make_plan(small, machine).steps.at(0).shape; };
    EXPECT_EQ(shape().path, PathKind::direct);
    EXPECT_TRUE(shape().run_inline);
    for (const Residence other : {Residence::hot, Residence::unknown}) {
        small.segments[0].residence = other;
        EXPECT_EQ(shape().path, PathKind::buffered);
        EXPECT_TRUE(shape().run_inline);
    }
    small.ranges[0].bytes = 8 * kKiB;
    EXPECT_FALSE(small_residence_matters(small, machine)) << "the question would cost too much of it";
    small.ranges[0].bytes = 64 * kKiB;
    profile_.rows.back().seconds = 95e-6;
    costs_ = std::make_unique<Costs>(profile_);
    small.costs = costs_.get();
    EXPECT_FALSE(small_residence_matters(small, machine)) << "not clearly faster";
}

TEST_F(Measured, cufile_is_worth_asking_only_where_it_may_win) {
    add(true, PathKind::buffered, 0.04);
    add(true, PathKind::gds_compat, 0.05);
    EXPECT_FALSE(cufile_may_win(request(), machine_));
    add(false, PathKind::gds_compat, 0.05);
    EXPECT_TRUE(cufile_may_win(request(), machine_)) << "nothing else was measured for cold files";
    add(false, PathKind::uring, 0.02);
    EXPECT_FALSE(cufile_may_win(request(), machine_));
    add(true, PathKind::gds_stream, 0.001);
    EXPECT_FALSE(cufile_may_win(request(), machine_)) << "stream calls are taken only when asked for";
}

TEST_F(Measured, what_cannot_be_taken_is_passed_over) {
    add(true, PathKind::buffered, 0.04);
    add(true, PathKind::direct, 0.01);
    add(true, PathKind::uring, 0.015);
    add(true, PathKind::gds, 0.005);
    RequestFacts facts = request();
    facts.direct = false;
    EXPECT_EQ(choose_read(hot_, facts, machine_).path, PathKind::buffered);
    facts.direct = true;
    EXPECT_EQ(choose_read(hot_, facts, machine_).path, PathKind::direct) << "cuFile was not asked";
    facts.gds_cause.clear();
    EXPECT_EQ(choose_read(hot_, facts, machine_).path, PathKind::gds);
    facts.kind = MemoryKind::pinned;
    EXPECT_EQ(choose_read(hot_, facts, machine_).path, PathKind::buffered) << "nothing was measured for pinned memory";
}

TEST_F(Measured, writes_never_take_a_mapping_by_themselves) {
    add(true, PathKind::mmap, 0.01, Direction::write);
    add(true, PathKind::buffered, 0.05, Direction::write);
    EXPECT_EQ(choose_write(hot_, request(Direction::write), machine_).path, PathKind::buffered);
}

TEST_F(Measured, writes_that_must_wait_for_the_storage_are_compared_by_when_it_has_them) {
    for (auto [path, seconds, synced] : {std::tuple{PathKind::buffered, 0.2, 0.6}, {PathKind::direct, 0.3, 0.3}}) {
        add(false, path, seconds, Direction::write);
        profile_.rows.back().synced_seconds = synced;
    }
    RequestFacts facts = request(Direction::write);
    const UniformPart cold{Residence::cold, kGiB};
    EXPECT_EQ(choose_write(cold, facts, machine_).path, PathKind::buffered);
    facts.dirty_room_bytes = 2 * kGiB;
    EXPECT_EQ(choose_write(cold, facts, machine_).path, PathKind::buffered);
    facts.dirty_room_bytes = kGiB / 2;
    const Choice choice = choose_write(cold, facts, machine_);
    EXPECT_EQ(choice.path, PathKind::direct);
    EXPECT_NE(choice.reason.find("more than the page cache takes unwritten"), std::string::npos) << choice.reason;
    facts.dirty_room_bytes.reset();
    facts.durable = true;
    EXPECT_EQ(choose_write(cold, facts, machine_).path, PathKind::direct);
}

TEST_F(Measured, small_requests_leave_the_calling_thread_only_where_both_states_say_so) {
    for (bool cached : {true, false}) {
        for (auto [path, seconds] : {std::pair{PathKind::buffered, 1e-4}, {PathKind::gds, cached ? 5e-5 : 2e-4}}) {
            add(cached, path, seconds);
            profile_.rows.back().bytes = 4 * kKiB;
        }
    }
    const auto small = [&] {
        RequestFacts facts = request();
        facts.blocking = true;
        facts.gds_cause.clear();
        facts.ranges = {{0, 4 * kKiB, 0}};
        facts.segments = {{{0, 0, 4 * kKiB}, Residence::unknown}};
        return make_plan(facts, machine_).steps.at(0).shape;
    };
    EXPECT_TRUE(small().run_inline) << "cold, the page cache is faster";
    profile_.rows.back().seconds = 6e-5;
    EXPECT_FALSE(small().run_inline);
    EXPECT_EQ(small().path, PathKind::gds);
}

TEST_F(Measured, without_rows_for_a_request_the_rule_holds_and_predicts_nothing) {
    add(true, PathKind::mmap, 0.01);
    const Choice choice = choose_read({Residence::cold, kGiB}, request(), machine_);
    EXPECT_EQ(choice.path, PathKind::uring);
    EXPECT_EQ(choice.cost.seconds, 0);
}

TEST_F(Measured, a_path_that_is_asked_for_is_predicted_beside_the_best) {
    add(true, PathKind::buffered, 0.04);
    add(true, PathKind::direct, 0.2);
    RequestFacts facts = request();
    facts.path = PathKind::direct;
    const Choice choice = asked_for(hot_, facts, machine_);
    EXPECT_EQ(choice.path, PathKind::direct);
    EXPECT_DOUBLE_EQ(choice.cost.seconds, 0.2);
    EXPECT_EQ(choice.next.path, PathKind::buffered);
}

TEST_F(Measured, a_measured_shape_is_used_where_the_budget_and_the_caller_leave_it) {
    ProfileRow shaped;
    shaped.cached = true;
    shaped.path = PathKind::direct;
    shaped.bytes = kGiB;
    shaped.seconds = 0.01;
    shaped.samples = 3;
    shaped.workers = 3;
    shaped.depth = 5;
    shaped.chunk_bytes = 2 * kMiB;
    profile_.rows.push_back(shaped);
    RequestFacts facts = request();
    EXPECT_EQ(make_plan(facts, machine_).steps.at(0).shape.workers, 3u);
    EXPECT_EQ(make_plan(facts, machine_).steps.at(0).shape.depth, 5u);
    EXPECT_EQ(make_plan(facts, machine_).steps.at(0).shape.chunk_bytes, 2 * kMiB);
    facts.workers = 2;
    EXPECT_EQ(make_plan(facts, machine_).steps.at(0).shape.workers, 2u);
    facts.workers = 0;
    MachineFacts small = machine_;
    small.budget_bytes = 8 * kMiB;
    EXPECT_LE(make_plan(facts, small).pinned_bytes, small.budget_bytes);
}

TEST_F(Measured, parts_of_a_read_go_each_its_own_way) {
    add(true, PathKind::buffered, 0.02);
    add(true, PathKind::direct, 0.2);
    add(false, PathKind::buffered, 0.9);
    add(false, PathKind::direct, 0.2);
    RequestFacts facts = request();
    facts.segments = {{{0, 0, kGiB / 2}, Residence::hot}, {{0, kGiB / 2, kGiB / 2}, Residence::cold}};
    const Plan plan = make_plan(facts, machine_);
    ASSERT_EQ(plan.steps.size(), 2u);
    EXPECT_EQ(plan.steps[0].shape.path, PathKind::buffered);
    EXPECT_EQ(plan.steps[1].shape.path, PathKind::direct);
    EXPECT_GT(plan.predicted_seconds(), 0.09);
    EXPECT_NE(plan.reason().find("512 MiB by direct, not in the page cache: the fastest measured here"),
              std::string::npos)
        << plan.reason();
}

TEST_F(Measured, candidates_come_fastest_first_then_unmeasured_then_refused) {
    add(true, PathKind::buffered, 0.04);
    add(true, PathKind::mmap, 0.02);
    const std::vector<Candidate> found = candidates(request(), machine_, Residence::hot, kGiB);
    EXPECT_EQ(found.at(0).path, PathKind::mmap);
    EXPECT_EQ(found.at(1).path, PathKind::buffered);
    EXPECT_EQ(found.at(2).seconds, 0);
    EXPECT_TRUE(found.at(2).refusal.empty());
    EXPECT_FALSE(found.back().refusal.empty());
}

TEST_F(Measured, a_path_that_is_taken_only_when_asked_for_is_no_refused_candidate_when_asked_for) {
    RequestFacts asked = request();
    asked.direction = Direction::write;
    asked.path = PathKind::mmap;
    const auto refused = [&](PathKind path) {
        const std::vector<Candidate> found = candidates(asked, machine_, Residence::unknown, kGiB);
        return !std::find_if(found.begin(), found.end(), [&](const Candidate& one) {
                    return one.path == path;
                })->refusal.empty();
    };
    EXPECT_FALSE(refused(PathKind::mmap));
    EXPECT_TRUE(refused(PathKind::gds_stream));
    asked.path = PathKind::gds_stream;
    EXPECT_FALSE(refused(PathKind::gds_stream));
    EXPECT_TRUE(refused(PathKind::mmap)) << "control: it was not asked for";
}

}  // namespace
}  // namespace penstock::policy
