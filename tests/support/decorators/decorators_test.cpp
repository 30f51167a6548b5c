// What the trace, count, throttle and fault decorators do.
#include <gtest/gtest.h>

#include <algorithm>

#include "path/file_rig.hpp"
#include "support/decorators/count.hpp"
#include "support/decorators/fault.hpp"
#include "support/decorators/throttle.hpp"
#include "support/decorators/trace.hpp"

namespace penstock::path {
namespace {

using conformance::Bytes;
using conformance::pattern;
using conformance::StoreRig;

Completion reap_one(Path& path, Deadline deadline = Deadline::after(std::chrono::seconds(10))) {
    Completion done{.tag = 999'999};
    EXPECT_EQ(path.reap({&done, 1}, deadline), 1u);
    return done;
}

Completion run(Path& path, const Operation& operation) {
    EXPECT_EQ(path.submit({&operation, 1}), 1u);
    return reap_one(path);
}

// A path with one file of 1000 bytes in a MemoryStore.
struct Stored {
    StoreRig rig;
    FileHandle file = rig.make_file(pattern(1000, 1), true);
    Bytes memory = Bytes(1000);
    Operation read(std::uint64_t offset, std::uint64_t bytes, std::uint64_t tag = 1) {
        return {Direction::read, &file, offset, memory.data(), bytes, tag};
    }
    Operation write(std::uint64_t offset, std::uint64_t bytes) {
        return {Direction::write, &file, offset, memory.data(), bytes, 1};
    }
};

TEST(Trace, records_every_operation_with_its_outcome_in_order_of_reaping) {
    Stored stored;
    const auto log = std::make_shared<TraceLog>();
    const auto path = traced(stored.rig.path(4), log);
    run(*path, stored.read(900, 200, 41));
    run(*path, {Direction::read, nullptr, 0, nullptr, 1, 42});
    const auto records = log->records();
    ASSERT_EQ(records.size(), 2u);
    EXPECT_EQ(records[0].moved_bytes, 100u);
    EXPECT_EQ(records[0].asked_bytes, 200u);
    EXPECT_GE(records[0].done_ns, records[0].submit_ns);
    EXPECT_EQ(records[1].status, ErrorCode::invalid_argument);
    const std::string csv = log->csv();
    EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
    EXPECT_NE(csv.find(",memory,read,1,900,200,100,ok,0,41\n"), std::string::npos) << csv;
}

TEST(Count, adds_up_bytes_short_counts_and_failures) {
    Stored stored;
    const auto counters = std::make_shared<PathCounters>();
    const auto path = counted(stored.rig.path(4), counters);
    run(*path, stored.read(900, 200));
    run(*path, stored.write(0, 50));
    run(*path, {Direction::read, nullptr, 0, nullptr, 1, 1});
    EXPECT_EQ(counters->submitted, 3u);
    EXPECT_EQ(counters->completed, 3u);
    EXPECT_EQ(counters->failed, 1u);
    EXPECT_EQ(counters->short_counts, 1u);
    EXPECT_EQ(counters->read_bytes, 100u);
    EXPECT_EQ(counters->write_bytes, 50u);
    EXPECT_EQ(counters->peak_in_flight, 1u);
}

double seconds_of(Path& path, std::span<const Operation> operations) {
    const auto start = Clock::now();
    EXPECT_EQ(path.submit(operations), operations.size());
    for (std::size_t i = 0; i < operations.size(); ++i) reap_one(path);
    return std::chrono::duration<double>(Clock::now() - start).count();
}

TEST(Throttle, shares_bandwidth_and_overlaps_latency) {
    Stored stored;
    const std::vector<Operation> four(4, stored.read(0, 1000));
    const auto narrow = throttled(stored.rig.path(4), {.bandwidth_bytes_per_s = 100'000});
    EXPECT_GE(seconds_of(*narrow, four), 0.039);  // 4 x 10 ms, one after the other
    const auto distant = throttled(stored.rig.path(4), {.latency_ns = 50'000'000});
    const double seconds = seconds_of(*distant, four);
    EXPECT_GE(seconds, 0.049);
    EXPECT_LT(seconds, 0.150);  // not 4 x 50 ms
}

TEST(Throttle, keeps_a_completion_back_until_its_time) {
    Stored stored;
    const auto path = throttled(stored.rig.path(4), {.latency_ns = 200'000'000});
    const Operation read = stored.read(0, 10);
    ASSERT_EQ(path->submit({&read, 1}), 1u);
    Completion done;
    EXPECT_EQ(path->reap({&done, 1}, Deadline::now()), 0u);
    EXPECT_EQ(path->reap({&done, 1}, Deadline::after(std::chrono::milliseconds(1))), 0u);
    EXPECT_EQ(path->reap({&done, 1}, Deadline::never()), 1u);
}

TEST(Fault, follows_its_script_by_operation_number) {
    Stored stored;
    const auto path = faulty(stored.rig.path(8), {.script = {{0, FaultKind::interrupted},
                                                             {1, FaultKind::again},
                                                             {2, FaultKind::short_count},
                                                             {3, FaultKind::io_error},
                                                             {4, FaultKind::no_space},
                                                             {5, FaultKind::no_space}}});
    EXPECT_EQ(run(*path, stored.read(0, 100)).system_code, EINTR);
    EXPECT_EQ(run(*path, stored.read(0, 100)).system_code, EAGAIN);
    EXPECT_EQ(run(*path, stored.read(0, 100)).bytes, 50u);
    EXPECT_EQ(run(*path, stored.read(0, 100)).system_code, EIO);
    EXPECT_EQ(run(*path, stored.read(0, 100)).bytes, 100u);  // ENOSPC does not apply to reads
    EXPECT_EQ(run(*path, stored.write(0, 100)).status, ErrorCode::no_space);
    EXPECT_EQ(run(*path, stored.read(0, 100)).bytes, 100u);
}

TEST(Fault, bad_bytes_fail_only_the_operations_that_reach_them) {
    Stored stored;
    const auto path = faulty(stored.rig.path(8), {.bad_from = 300, .bad_to = 400, .full_from = 900});
    EXPECT_EQ(run(*path, stored.read(0, 300)).bytes, 300u);
    EXPECT_EQ(run(*path, stored.read(250, 100)).bytes, 50u);
    EXPECT_EQ(run(*path, stored.read(300, 100)).system_code, EIO);
    EXPECT_EQ(run(*path, stored.read(399, 100)).system_code, EIO);
    EXPECT_EQ(run(*path, stored.read(400, 600)).bytes, 600u);
    EXPECT_EQ(run(*path, stored.write(800, 200)).bytes, 100u);
    EXPECT_EQ(run(*path, stored.write(900, 1)).status, ErrorCode::no_space);
}

TEST(Fault, same_seed_same_faults) {
    const auto outcomes = [](std::uint64_t seed) {
        Stored stored;
        const auto path = faulty(stored.rig.path(4), {.seed = seed, .short_count = 0.3, .interrupted = 0.3});
        std::vector<std::uint64_t> moved;
        for (int i = 0; i < 40; ++i) moved.push_back(run(*path, stored.read(0, 100)).bytes);
        return moved;
    };
    EXPECT_EQ(outcomes(1), outcomes(1));
    EXPECT_NE(outcomes(1), outcomes(2));
}

TEST(Fault, a_lost_completion_holds_its_place_in_flight_and_only_the_deadline_ends_the_wait) {
    Stored stored;
    const auto path = faulty(stored.rig.path(2), {.script = {{0, FaultKind::lose}}});
    const std::vector<Operation> reads(3, stored.read(0, 10));
    EXPECT_EQ(path->submit(reads), 2u);
    reap_one(*path);
    Completion done;
    const auto start = Clock::now();
    EXPECT_EQ(path->reap({&done, 1}, Deadline::after(std::chrono::milliseconds(20))), 0u);
    EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(20));
    EXPECT_EQ(path->submit(reads), 1u);
}

TEST(Fault, a_delayed_completion_is_passed_by_later_ones) {
    Stored stored;
    const auto path =
        faulty(stored.rig.path(4), {.delay = std::chrono::milliseconds(20), .script = {{0, FaultKind::delay}}});
    const std::vector<Operation> reads{stored.read(0, 10, 1), stored.read(0, 10, 2)};
    EXPECT_EQ(path->submit(reads), 2u);
    EXPECT_EQ(reap_one(*path).tag, 2u);
    EXPECT_EQ(reap_one(*path).tag, 1u);
}

}  // namespace
}  // namespace penstock::path
