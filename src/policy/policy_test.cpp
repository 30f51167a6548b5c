// Choices for fixed machines: every fact that should decide does, and no path that the caller named is replaced.
#include "policy/policy.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "penstock/error.hpp"
#include "policy/shapes.hpp"

namespace penstock::policy {
namespace {

MachineFacts gpu_machine() { return {.cpus = 16, .emulated_device = false, .uring = true, .uring_cause = {}}; }

RequestFacts request_of(Direction direction, std::uint64_t offset, std::uint64_t bytes, Residence residence) {
    RequestFacts request;
    request.direction = direction;
    request.ranges = {{offset, bytes, 0}};
    request.segments = {{{0, 0, bytes}, residence}};
    request.direct = true;
    request.offset_alignment = 512;
    request.memory_alignment = 512;
    return request;
}

ErrorCode refusal(const RequestFacts& request, const MachineFacts& machine) {
    try {
        make_plan(request, machine);
    } catch (const Error& error) {
        EXPECT_FALSE(error.info().cause.empty());
        return error.code();
    }
    return ErrorCode::ok;
}

TEST(Policy, residence_decides_reads) {
    const auto path = [](Residence residence) {
        return make_plan(request_of(Direction::read, 0, kGiB, residence), gpu_machine()).steps.at(0).shape.path;
    };
    EXPECT_EQ(path(Residence::hot), PathKind::buffered);
    EXPECT_EQ(path(Residence::cold), PathKind::uring);
    EXPECT_EQ(path(Residence::registered), PathKind::mmap);
    EXPECT_EQ(path(Residence::unknown), PathKind::buffered);
    EXPECT_EQ(path(Residence::hidden), PathKind::buffered);
}

TEST(Policy, files_in_memory_are_copied_from_their_mapping_when_that_pays) {
    RequestFacts request = request_of(Direction::read, 0, kGiB, Residence::hot);
    request.memory_backed = true;
    const auto path = [&] { return make_plan(request, gpu_machine()).steps.at(0).shape; };
    EXPECT_EQ(path().path, PathKind::mmap);
    EXPECT_TRUE(path().staged);
    request.kind = MemoryKind::system;
    EXPECT_EQ(path().path, PathKind::buffered);
    request.kind = MemoryKind::device;
    request.ranges[0].bytes = 100 * kKiB;
    EXPECT_EQ(path().path, PathKind::buffered);
}

TEST(Policy, wishes_beyond_reason_are_refused_with_the_limit) {
    const auto cause = [](auto RequestFacts::*wish, auto value) -> std::string {
        RequestFacts request = request_of(Direction::read, 0, kGiB, Residence::cold);
        request.kind = MemoryKind::system;  // straight to the caller's memory, so no budget limits it
        request.*wish = value;
        try {
            make_plan(request, gpu_machine());
        } catch (const Error& error) {
            return error.info().cause;
        }
        return "accepted";
    };
    EXPECT_EQ(cause(&RequestFacts::workers, 513u), "workers 513 is more than 512");
    EXPECT_EQ(cause(&RequestFacts::depth, 5000u), "depth 5000 is more than 4096");
    EXPECT_EQ(cause(&RequestFacts::chunk_bytes, 2 * kGiB), "chunk_bytes 2147483648 is more than 1073741824");
    EXPECT_EQ(cause(&RequestFacts::chunk_bytes, std::uint64_t{3}), "chunk_bytes 3 is no multiple of 4096");
    EXPECT_EQ(cause(&RequestFacts::chunk_bytes, 4 * kKiB + 512), "chunk_bytes 4608 is no multiple of 4096");
    EXPECT_EQ(cause(&RequestFacts::chunk_bytes, 4 * kKiB), "accepted");
    EXPECT_EQ(cause(&RequestFacts::workers, 512u), "accepted");
    EXPECT_EQ(cause(&RequestFacts::depth, 4096u), "accepted");
    EXPECT_EQ(cause(&RequestFacts::chunk_bytes, kGiB), "accepted");
}

TEST(Policy, a_registered_mapping_needs_no_staging) {
    const Plan plan = make_plan(request_of(Direction::read, 0, kGiB, Residence::registered), gpu_machine());
    EXPECT_FALSE(plan.steps.at(0).shape.staged);
    EXPECT_EQ(plan.pinned_bytes, 0u);
}

TEST(Policy, cold_reads_of_few_pieces_go_by_threads_that_wait) {
    const auto path = [](const RequestFacts& request) {
        return make_plan(request, gpu_machine()).steps.at(0).shape.path;
    };
    EXPECT_EQ(path(request_of(Direction::read, 0, 4 * kMiB, Residence::cold)), PathKind::direct);
    EXPECT_EQ(path(request_of(Direction::read, 0, 8 * kMiB, Residence::cold)), PathKind::uring);
    RequestFacts among_others = request_of(Direction::read, 0, 4 * kMiB, Residence::cold);
    among_others.under_way = 24;
    EXPECT_EQ(path(among_others), PathKind::uring);
    RequestFacts many = request_of(Direction::read, 0, 4096, Residence::cold);
    for (std::uint64_t i = 1; i < 100; ++i) {
        many.ranges.push_back({i * kMiB, 4096, 0});
        many.segments.push_back({{i, 0, 4096}, Residence::cold});
    }
    EXPECT_EQ(path(many), PathKind::uring);
}

TEST(Policy, cold_reads_without_uring_or_direct_say_why) {
    MachineFacts machine = gpu_machine();
    machine.uring = false;
    machine.uring_cause = "forbidden by seccomp";
    RequestFacts request = request_of(Direction::read, 0, kGiB, Residence::cold);
    Plan plan = make_plan(request, machine);
    EXPECT_EQ(plan.steps.at(0).shape.path, PathKind::direct);
    EXPECT_NE(plan.describe().find("seccomp"), std::string::npos);
    request.direct = false;
    request.direct_cause = "refused by testfs";
    plan = make_plan(request, machine);
    EXPECT_EQ(plan.steps.at(0).shape.path, PathKind::buffered);
    EXPECT_NE(plan.describe().find("testfs"), std::string::npos);
}

TEST(Policy, a_partly_cached_file_is_read_by_two_steps_that_cover_it) {
    RequestFacts request = request_of(Direction::read, 0, 300, Residence::hot);
    request.ranges[0].bytes = 300 * kMiB;
    request.segments = {{{0, 0, 100 * kMiB}, Residence::hot},
                        {{0, 100 * kMiB, 150 * kMiB}, Residence::cold},
                        {{0, 250 * kMiB, 50 * kMiB}, Residence::hot}};
    const Plan plan = make_plan(request, gpu_machine());
    ASSERT_EQ(plan.steps.size(), 2u);
    EXPECT_EQ(plan.steps[0].shape.path, PathKind::buffered);
    EXPECT_EQ(plan.steps[0].pieces.size(), 2u);
    EXPECT_EQ(plan.steps[1].shape.path, PathKind::uring);
}

TEST(Policy, what_is_cold_and_aligned_is_read_by_the_thread_that_waits) {
    RequestFacts request = request_of(Direction::read, 8192, 256 * kKiB, Residence::cold);
    MachineFacts machine = gpu_machine();
    const auto shape = [&] { return make_plan(request, machine).steps.at(0).shape; };
    EXPECT_FALSE(shape().run_inline);
    request.blocking = true;
    EXPECT_FALSE(shape().run_inline) << "without lanes for it";
    machine.caller_direct_bytes = 512 * kKiB;
    request.under_way = 100;
    EXPECT_EQ(shape().path, PathKind::direct);
    EXPECT_TRUE(shape().run_inline);
    request.ranges[0].offset_bytes = 100;
    EXPECT_FALSE(shape().run_inline);
    request.ranges[0] = {0, kMiB, 0};
    request.segments[0].piece.bytes = kMiB;
    EXPECT_FALSE(shape().run_inline);
}

TEST(Policy, what_the_page_cache_has_is_copied_for_the_host_by_the_thread_that_waits) {
    RequestFacts request = request_of(Direction::read, 100, kMiB, Residence::hot);
    MachineFacts machine = gpu_machine();
    request.kind = MemoryKind::system;
    request.blocking = true;
    request.answers_here = true;
    const auto is_inline = [&] { return make_plan(request, machine).steps.at(0).shape.run_inline; };
    EXPECT_FALSE(is_inline()) << "without leave for it";
    machine.caller_cached_bytes = kMiB;
    EXPECT_TRUE(is_inline());
    const Step step = make_plan(request, machine).steps.at(0);
    EXPECT_EQ(step.shape.path, PathKind::buffered);
    EXPECT_FALSE(step.shape.staged);
    EXPECT_EQ(step.reason, "in the page cache: a worker would have to be woken");
    const auto but = [&](const std::function<void(RequestFacts&)>& change) {
        RequestFacts other = request;
        change(other);
        return make_plan(other, machine).steps.at(0).shape.run_inline;
    };
    EXPECT_TRUE(but([](RequestFacts& other) { other.kind = MemoryKind::pinned; }));
    EXPECT_FALSE(but([](RequestFacts& other) { other.kind = MemoryKind::device; })) << "it has no lanes";
    EXPECT_FALSE(but([](RequestFacts& other) { other.blocking = false; }));
    EXPECT_FALSE(but([](RequestFacts& other) { other.answers_here = false; })) << "a server may never answer";
    EXPECT_FALSE(but([](RequestFacts& other) { other.direction = Direction::write, other.durable = true; }));
    EXPECT_FALSE(but([](RequestFacts& other) { other.segments[0].residence = Residence::cold; }));
    EXPECT_FALSE(but([](RequestFacts& other) { other.segments[0].residence = Residence::unknown; }));
    EXPECT_FALSE(but([](RequestFacts& other) { other.path = PathKind::buffered; })) << "what is cached is not asked";
    EXPECT_FALSE(but([](RequestFacts& other) { other.workers = 2; }));
    EXPECT_FALSE(but([](RequestFacts& other) { other.chunk_bytes = kMiB; }));
    machine.caller_cached_bytes = kMiB - 1;
    EXPECT_FALSE(is_inline());
    EXPECT_GT(caller_cached_bytes(2), caller_cached_bytes(16)) << "workers of many cores copy faster together";
}

TEST(Policy, what_the_page_cache_has_is_staged_for_a_device_by_the_thread_that_waits) {
    RequestFacts request = request_of(Direction::read, 100, kMiB, Residence::hot);
    MachineFacts machine = gpu_machine();
    request.blocking = true;
    request.answers_here = true;
    const auto step_of = [&] { return make_plan(request, machine).steps.at(0); };
    EXPECT_FALSE(step_of().shape.run_inline) << "without lanes for it";
    machine.caller_staged_bytes = kMiB;
    EXPECT_TRUE(step_of().shape.run_inline);
    EXPECT_TRUE(step_of().shape.staged);
    EXPECT_EQ(step_of().shape.chunk_bytes, kStagedPiece);
    EXPECT_EQ(step_of().shape.depth, 2u);
    RequestFacts larger = request_of(Direction::read, 100, 4 * kMiB, Residence::hot);
    larger.blocking = larger.answers_here = true;
    machine.caller_staged_bytes = 4 * kMiB;
    EXPECT_EQ(make_plan(larger, machine).pinned_bytes, 2 * kMiB) << "what it holds, not what it moves";
    EXPECT_EQ(step_of().reason, "in the page cache: a worker would have to be woken");
    request.kind = MemoryKind::managed;
    EXPECT_FALSE(step_of().shape.run_inline);
    request.kind = MemoryKind::device;
    request.segments[0].residence = Residence::registered;
    EXPECT_FALSE(step_of().shape.run_inline) << "the device reads the mapping";
    request = request_of(Direction::write, 100, kMiB - 1, Residence::unknown);
    request.blocking = true;
    request.answers_here = true;
    EXPECT_FALSE(step_of().shape.run_inline);
}

TEST(Policy, more_than_two_workers_write_a_file_where_the_file_system_locks_ranges) {
    RequestFacts request = request_of(Direction::write, 0, 256 * kMiB, Residence::unknown);
    request.path = PathKind::buffered;
    EXPECT_EQ(make_plan(request, gpu_machine()).steps.at(0).shape.workers, 2u);
    request.parallel_writes = true;
    EXPECT_EQ(make_plan(request, gpu_machine()).steps.at(0).shape.workers, 8u);
}

TEST(Policy, small_writes_of_the_host_go_to_the_page_cache_by_the_thread_that_waits) {
    RequestFacts request = request_of(Direction::write, 100, kMiB - 1, Residence::unknown);
    MachineFacts machine = gpu_machine();
    request.kind = MemoryKind::system;
    request.blocking = true;
    request.answers_here = true;
    EXPECT_FALSE(make_plan(request, machine).steps.at(0).shape.run_inline) << "without leave for it";
    machine.caller_cached_bytes = kMiB;
    const Step step = make_plan(request, machine).steps.at(0);
    EXPECT_TRUE(step.shape.run_inline);
    EXPECT_EQ(step.shape.path, PathKind::buffered);
    EXPECT_EQ(step.shape.direction, Direction::write);
    EXPECT_EQ(step.reason, "small write: to the page cache; a worker would have to be woken");
    const auto but = [&](const std::function<void(RequestFacts&)>& change) {
        RequestFacts other = request;
        change(other);
        return make_plan(other, machine).steps.at(0).shape.run_inline;
    };
    EXPECT_FALSE(but([](RequestFacts& other) { other.durable = true; })) << "that waits for storage";
    EXPECT_FALSE(but([](RequestFacts& other) { other.dirty_room_bytes = kMiB - 2; })) << "and so does that";
    EXPECT_TRUE(but([](RequestFacts& other) { other.dirty_room_bytes = kMiB; }));
    EXPECT_FALSE(but([](RequestFacts& other) { other.kind = MemoryKind::device; }));
    EXPECT_FALSE(but([](RequestFacts& other) { other.blocking = false; }));
    EXPECT_FALSE(but([](RequestFacts& other) { other.answers_here = false; })) << "a server may never answer";
    EXPECT_FALSE(but([](RequestFacts& other) { other.path = PathKind::buffered; }));
}

TEST(Policy, a_write_that_nothing_keeps_from_the_page_cache_stays_there_up_to_a_size) {
    RequestFacts request = request_of(Direction::write, 0, kCachedWriteMax, Residence::unknown);
    request.blocking = request.answers_here = true;
    MachineFacts machine = gpu_machine();
    machine.caller_cached_bytes = kMiB;
    const auto path_with = [&](const std::function<void(RequestFacts&)>& change) {
        RequestFacts other = request;
        change(other);
        return make_plan(other, machine).steps.at(0).shape.path;
    };
    EXPECT_EQ(path_with([](RequestFacts&) {}), PathKind::buffered);
    EXPECT_TRUE(dirty_room_matters(request, machine));
    EXPECT_EQ(path_with([](RequestFacts& other) { other.dirty_room_bytes = kCachedWriteMax; }), PathKind::buffered);
    EXPECT_EQ(path_with([](RequestFacts& other) { other.dirty_room_bytes = kCachedWriteMax - 1; }), PathKind::uring)
        << "it would wait for the storage";
    EXPECT_EQ(path_with([](RequestFacts& other) { other.ranges[0].bytes = kCachedWriteMax + 4096; }), PathKind::uring);
    EXPECT_EQ(path_with([](RequestFacts& other) { other.durable = true; }), PathKind::uring);
    EXPECT_EQ(path_with([](RequestFacts& other) { other.blocking = false; }), PathKind::uring);
    EXPECT_EQ(path_with([](RequestFacts& other) { other.answers_here = false; }), PathKind::uring);
    const auto asks = [&](std::uint64_t bytes) {
        RequestFacts other = request;
        other.ranges[0].bytes = bytes;
        return dirty_room_matters(other, machine);
    };
    EXPECT_FALSE(asks(kMiB)) << "the caller's own copy ends before the answer is there";
    EXPECT_TRUE(asks(kMiB + 1));
    EXPECT_FALSE(asks(kCachedWriteMax + 1)) << "the storage has it anyway";
}

TEST(Policy, small_blocking_requests_run_on_the_calling_thread) {
    RequestFacts request = request_of(Direction::read, 0, 4096, Residence::unknown);
    EXPECT_FALSE(make_plan(request, gpu_machine()).steps.at(0).shape.run_inline);
    request.blocking = true;
    EXPECT_TRUE(make_plan(request, gpu_machine()).steps.at(0).shape.run_inline);
    request.path = PathKind::direct;
    EXPECT_FALSE(make_plan(request, gpu_machine()).steps.at(0).shape.run_inline);
}

TEST(Policy, unaligned_writes_go_direct_in_whole_pages_and_buffered_at_the_edges) {
    const RequestFacts request = request_of(Direction::write, 100, 8 * kMiB, Residence::unknown);
    const Plan plan = make_plan(request, gpu_machine());
    ASSERT_EQ(plan.steps.size(), 2u);
    EXPECT_EQ(plan.steps[0].shape.path, PathKind::uring);
    EXPECT_EQ(plan.steps[0].pieces.at(0), (PlanPiece{0, 4096 - 100, 8 * kMiB - 4096}));
    EXPECT_EQ(plan.steps[1].shape.path, PathKind::buffered);
    EXPECT_EQ(plan.steps[1].pieces.at(0), (PlanPiece{0, 0, 4096 - 100}));
    EXPECT_EQ(plan.steps[1].pieces.at(1), (PlanPiece{0, 8 * kMiB - 100, 100}));
}

TEST(Policy, many_short_pieces_with_ends_inside_pages_stay_in_the_page_cache) {
    RequestFacts request = request_of(Direction::write, 0, 0, Residence::unknown);
    request.answers_here = true;
    const auto path_of = [&](std::uint64_t bytes, std::uint64_t apart, std::size_t count = 64) {
        request.ranges.clear();
        request.segments.clear();
        for (std::size_t i = 0; i < count; ++i) {
            request.ranges.push_back({i * apart, bytes, 0});
            request.segments.push_back({{i, 0, bytes}, Residence::unknown});
        }
        return make_plan(request, gpu_machine()).steps.at(0).shape.path;
    };
    EXPECT_EQ(path_of(131080, 262160), PathKind::uring_buffered);
    EXPECT_EQ(path_of(32776, 65552), PathKind::buffered) << "the round trip of a queue costs more than it saves";
    EXPECT_EQ(path_of(131072, 262144), PathKind::uring) << "whole pages";
    EXPECT_EQ(path_of(524296, 1048592), PathKind::uring) << "few ends for the bytes";
    EXPECT_EQ(path_of(262152, 524304, 8), PathKind::uring) << "few pieces";
    request.durable = true;
    EXPECT_EQ(path_of(131080, 262160), PathKind::uring) << "the storage is waited for in any case";
    EXPECT_EQ(path_of(98312, 262160), PathKind::uring_buffered);
    request.durable = request.answers_here = false;
    EXPECT_EQ(path_of(131080, 262160), PathKind::uring) << "a server has other rules";
}

TEST(Policy, edges_use_the_page_where_it_is_larger_than_the_block) {
    MachineFacts machine = gpu_machine();
    machine.page_bytes = 65536;
    const Plan plan = make_plan(request_of(Direction::write, 4096, 8 * kMiB, Residence::unknown), machine);
    EXPECT_EQ(plan.steps[0].pieces.at(0).offset_bytes, 65536u - 4096u);
}

TEST(Policy, what_was_asked_for_is_taken_or_refused) {
    RequestFacts request = request_of(Direction::read, 0, kGiB, Residence::hot);
    request.path = PathKind::direct;
    EXPECT_EQ(make_plan(request, gpu_machine()).steps.at(0).shape.path, PathKind::direct);
    request.direct = false;
    request.direct_cause = "tmpfs";
    EXPECT_EQ(refusal(request, gpu_machine()), ErrorCode::unsupported);
    request.path = PathKind::uring_buffered;
    MachineFacts machine = gpu_machine();
    machine.uring = false;
    machine.uring_cause = "kernel.io_uring_disabled=2";
    EXPECT_EQ(refusal(request, machine), ErrorCode::unsupported);
    request.path = PathKind::gds;
    request.kind = MemoryKind::system;
    EXPECT_EQ(refusal(request, gpu_machine()), ErrorCode::unsupported);
    RequestFacts write = request_of(Direction::write, 1, 1 * kMiB, Residence::unknown);
    write.path = PathKind::direct;
    EXPECT_EQ(refusal(write, gpu_machine()), ErrorCode::ok);
    write.strict = true;
    EXPECT_EQ(refusal(write, gpu_machine()), ErrorCode::fallback_refused);
}

TEST(Policy, strict_takes_no_bypass_that_nothing_can_prove) {
    RequestFacts request = request_of(Direction::read, 0, kGiB, Residence::cold);
    request.bypass_unknown = "a server moves the bytes";
    request.path = PathKind::direct;
    EXPECT_EQ(refusal(request, gpu_machine()), ErrorCode::ok);
    request.strict = true;
    EXPECT_EQ(refusal(request, gpu_machine()), ErrorCode::fallback_refused);
    request.path = PathKind::buffered;
    EXPECT_EQ(refusal(request, gpu_machine()), ErrorCode::ok);
    request.path = PathKind::automatic;
    EXPECT_EQ(refusal(request, gpu_machine()), ErrorCode::ok);
}

TEST(Policy, every_plan_fits_its_budget_or_is_refused) {
    for (std::uint64_t budget : {2 * kMiB, 6 * kMiB, 30 * kMiB, 256 * kMiB}) {
        for (std::uint32_t cpus : {1, 2, 16, 128}) {
            for (PathKind path : {PathKind::buffered, PathKind::direct, PathKind::uring, PathKind::aio}) {
                for (std::uint64_t bytes : {100 * kKiB, 10 * kMiB, 100 * kGiB}) {
                    MachineFacts machine = gpu_machine();
                    machine.budget_bytes = budget;
                    machine.cpus = cpus;
                    RequestFacts request = request_of(Direction::read, 0, bytes, Residence::cold);
                    request.path = path;
                    for (const Step& step : make_plan(request, machine).steps) {
                        EXPECT_LE(staging_bytes(step.shape), budget) << to_string(path) << " " << cpus;
                        EXPECT_GE(step.shape.workers, 1u);
                        EXPECT_EQ(step.shape.chunk_bytes % 4096, 0u);
                    }
                }
            }
        }
    }
    RequestFacts request = request_of(Direction::read, 0, kGiB, Residence::cold);
    request.workers = 64;
    request.chunk_bytes = 64 * kMiB;
    request.depth = 8;
    EXPECT_EQ(refusal(request, gpu_machine()), ErrorCode::invalid_argument);
}

TEST(Policy, host_memory_goes_straight_where_alignment_allows) {
    RequestFacts request = request_of(Direction::read, 4096, 1 * kMiB, Residence::cold);
    request.kind = MemoryKind::system;
    request.ranges[0].memory_address = 8192;
    EXPECT_FALSE(make_plan(request, gpu_machine()).steps.at(0).shape.staged);
    request.ranges[0].memory_address = 8193;
    EXPECT_TRUE(make_plan(request, gpu_machine()).steps.at(0).shape.staged);
    request.segments[0].residence = Residence::hot;
    EXPECT_FALSE(make_plan(request, gpu_machine()).steps.at(0).shape.staged);
}

TEST(Policy, a_plan_reads_as_a_sentence) {
    const Plan plan = make_plan(request_of(Direction::read, 0, 4 * kGiB, Residence::hot), gpu_machine());
    EXPECT_EQ(plan.describe(),
              "read 4.00 GiB by buffered, up to 12 workers sharing 6 slots of 16 MiB in parts of 1 MiB: in the page "
              "cache: copying workers");
}

}  // namespace
}  // namespace penstock::policy
