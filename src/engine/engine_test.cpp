// Plans executed over memory files against an oracle, with faults; scheduling; what ends a transfer.
#include <algorithm>
#include <atomic>
#include <random>

#include "engine/memory_rig.hpp"

namespace penstock::engine {
namespace {

using test::EngineOverMemory;
using test::random_bytes;
using test::WrappedPath;

TEST_F(EngineOverMemory, random_plans_with_faults_agree_with_the_oracle) {
    path::FaultOptions faults;
    faults.seed = 11;
    faults.short_count = faults.interrupted = faults.again = 0.15;
    make_engine(&faults);
    const auto contents = random_bytes(300000, 1);
    std::byte* memory = device_bytes(1 * kMiB);
    std::mt19937_64 random(2);
    for (int round = 0; round < 60; ++round) {
        store_->put(1, contents);
        std::vector<std::byte> oracle(1 * kMiB, std::byte{0x5A});
        copy(CopyDirection::to_device, memory, oracle.data(), oracle.size());
        std::vector<RequestRange> ranges;
        std::uint64_t place = 0;
        for (std::uint64_t i = 0, n = 1 + random() % 40; i < n; ++i) {
            const std::uint64_t offset = random() % contents.size();
            const std::uint64_t bytes = 1 + random() % std::min<std::uint64_t>(20000, contents.size() - offset);
            ranges.push_back({&file_, offset, memory + place, bytes, 0});
            std::copy_n(contents.begin() + static_cast<long>(offset), bytes, oracle.begin() + static_cast<long>(place));
            place += bytes + random() % 100;
        }
        Shape shape;
        shape.chunk_bytes = 4096 << (random() % 4);
        shape.workers = static_cast<std::uint32_t>(1 + random() % 4);
        shape.depth = static_cast<std::uint32_t>(1 + random() % 4);
        Shape read_shape = shape;
        if (round % 2 == 1) read_shape.part_bytes = 512 << (random() % 6);  // shared slots
        const auto read = transfer(Direction::read, ranges, read_shape);
        engine_->start(read);
        ASSERT_TRUE(read->result().ok()) << read->result().error.message();
        std::vector<std::byte> got(oracle.size());
        copy(CopyDirection::to_host, got.data(), memory, got.size());
        ASSERT_TRUE(got == oracle) << "round " << round;

        store_->put(1, std::vector<std::byte>(contents.size()));
        const auto write = transfer(Direction::write, ranges, shape);
        engine_->start(write);
        ASSERT_TRUE(write->result().ok());
        const auto written = store_->contents(1);
        for (const RequestRange& range :
             write->request().ranges) {  // later ranges may overlap earlier ones: same bytes
            ASSERT_TRUE(std::equal(contents.begin() + static_cast<long>(range.offset_bytes),
                                   contents.begin() + static_cast<long>(range.offset_bytes + range.bytes),
                                   written.begin() + static_cast<long>(range.offset_bytes)));
        }
    }
}

TEST_F(EngineOverMemory, evidence_counts_every_byte_and_operation) {
    make_engine();
    store_->put(1, random_bytes(100000, 3));
    std::byte* memory = device_bytes(100000);
    const auto read = transfer(Direction::read, {{&file_, 0, memory, 100000, 0}}, {.chunk_bytes = 8192, .workers = 2});
    engine_->start(read);
    const Outcome outcome = read->result();
    ASSERT_EQ(outcome.evidence.paths.size(), 1u);
    EXPECT_EQ(outcome.evidence.paths[0].bytes, 100000u);
    EXPECT_EQ(outcome.evidence.paths[0].operations, 13u);
    EXPECT_EQ(outcome.evidence.paths[0].host_copies_bytes, 100000u);
}

// A ring is costly to make and more so to unmake: requests that differ in size must not make another.
TEST_F(EngineOverMemory, requests_of_many_sizes_make_a_path_for_each_worker_and_no_more) {
    for (const std::uint32_t workers : {1u, 4u}) {
        std::atomic<std::uint32_t> made{0};
        make_engine_with({}, [&made](std::unique_ptr<Path> path) {
            ++made;
            return path;
        });
        store_->put(1, random_bytes(4 * kMiB, 7));
        std::byte* memory = device_bytes(16 * kMiB);
        const auto start = [&](Shape shape, std::uint64_t number, Direction direction) {
            const std::uint64_t bytes = number % 2 == 0 ? 4 * kKiB : kMiB;
            const auto one = transfer(
                direction, {{&file_, number % 3 * kMiB, memory + number % 16 * kMiB, bytes, 0}}, shape);
            engine_->start(one);
            return one;
        };
        const Shape largest{.chunk_bytes = 256 * kKiB, .workers = workers, .depth = 16};
        ASSERT_TRUE(start(largest, 1, Direction::read)->result().ok());  // the warm-up
        for (std::uint64_t round = 0; round < 60; ++round) {
            std::vector<std::shared_ptr<TransferState>> started;
            const Shape shape{.chunk_bytes = 64 * kKiB << round % 3,
                              .workers = 1 + static_cast<std::uint32_t>(round) % workers,
                              .depth = 4u << round % 3};
            for (std::uint64_t i = 0; i < 1u << round % 5; ++i) {
                started.push_back(start(shape, round + i, round % 2 == 0 ? Direction::read : Direction::write));
            }
            for (const auto& one : started) ASSERT_TRUE(one->result().ok()) << one->result().error.message();
        }
        // A worker that had nothing to do in the warm-up may begin with small slots and need larger ones once.
        EXPECT_LE(made, workers == 1 ? 1 : 2 * workers);
    }
}

TEST_F(EngineOverMemory, a_later_small_transfer_does_not_wait_for_an_earlier_large_one) {
    HostDeviceOptions slow;
    slow.bandwidth_bytes_per_s = 100e6;
    device_ = make_host_device(slow);
    make_engine();
    store_->put(1, std::vector<std::byte>(200 * kMiB));
    std::byte* memory = device_bytes(200 * kMiB);
    const Shape one_worker{.chunk_bytes = 1 * kMiB, .workers = 1};
    const auto large = transfer(Direction::read, {{&file_, 0, memory, 200 * kMiB, 0}}, one_worker);
    engine_->start(large);
    Shape other = one_worker;  // another shape: no session takes it along, it must get its turn
    other.chunk_bytes = 512 * kKiB;
    const auto small = transfer(Direction::read, {{&file_, 0, memory, 1 * kMiB, 0}}, other);
    engine_->start(small);
    EXPECT_TRUE(small->wait(Deadline::after(std::chrono::seconds(10))));
    EXPECT_FALSE(large->done());
    large->cancel();
    large->wait(Deadline::never());
}

TEST_F(EngineOverMemory, a_team_shares_slots_and_copies_each_once) {
    make_engine();
    store_->put(1, random_bytes(10 * kMiB + 77, 4));
    std::byte* memory = device_bytes(10 * kMiB + 77);
    const Shape shape{.chunk_bytes = 1 * kMiB, .part_bytes = 64 * kKiB, .workers = 4, .depth = 3};
    const auto read = transfer(Direction::read, {{&file_, 0, memory, 10 * kMiB + 77, 0}}, shape);
    engine_->start(read);
    const Outcome outcome = read->result();
    ASSERT_TRUE(outcome.ok());
    EXPECT_EQ(outcome.bytes, 10 * kMiB + 77);
    EXPECT_EQ(outcome.evidence.paths.at(0).host_copies_bytes, 10 * kMiB + 77);
    EXPECT_EQ(outcome.evidence.paths.at(0).operations, 161u);
    EXPECT_LE(engine_->pinned_peak_bytes(), 4 * kMiB);  // once, not once for each worker
    std::vector<std::byte> got(10 * kMiB + 77);
    copy(CopyDirection::to_host, got.data(), memory, got.size());
    EXPECT_TRUE(got == store_->contents(1));
}

TEST_F(EngineOverMemory, a_team_meets_errors_ends_of_file_and_cancellation_without_hanging) {
    path::FaultOptions faults;
    make_engine(&faults);
    store_->put(1, random_bytes(6 * kMiB, 5));
    std::byte* memory = device_bytes(8 * kMiB);
    const Shape shape{.chunk_bytes = 1 * kMiB, .part_bytes = 64 * kKiB, .workers = 3, .depth = 2};
    const auto past_end = transfer(Direction::read, {{&file_, 0, memory, 8 * kMiB, 0}}, shape);
    engine_->start(past_end);
    EXPECT_TRUE(past_end->result().reached_end);
    EXPECT_EQ(past_end->result().bytes, 6 * kMiB);
    const auto cancelled = transfer(Direction::read, {{&file_, 0, memory, 6 * kMiB, 0}}, shape);
    engine_->start(cancelled);
    cancelled->cancel();
    EXPECT_TRUE(cancelled->wait(Deadline::after(std::chrono::seconds(5))));
    faults.bad_from = 3 * kMiB;
    make_engine(&faults);
    const auto broken = transfer(Direction::read, {{&file_, 0, memory, 6 * kMiB, 0}}, shape);
    engine_->start(broken);
    EXPECT_EQ(broken->result().error.code, ErrorCode::io_error);
    EXPECT_EQ(broken->result().bytes, 3 * kMiB);
    std::vector<std::byte> no_device_memory(6 * kMiB);
    const auto wild = transfer(Direction::read, {{&file_, 0, no_device_memory.data(), 2 * kMiB, 0}}, shape);
    engine_->start(wild);
    EXPECT_TRUE(wild->wait(Deadline::after(std::chrono::seconds(5))));
    EXPECT_FALSE(wild->result().ok());
}

TEST_F(EngineOverMemory, an_empty_plan_ends_at_once) {
    make_engine();
    const auto nothing = std::make_shared<TransferState>(TransferRequest{}, Plan{});
    engine_->start(nothing);
    EXPECT_TRUE(nothing->done());
    EXPECT_EQ(nothing->result().bytes, 0u);
}

TEST_F(EngineOverMemory, a_path_that_cannot_be_made_fails_the_transfer_with_its_cause) {
    make_engine();
    std::byte* memory = device_bytes(4096);
    auto read = transfer(Direction::read, {{&file_, 0, memory, 4096, 0}}, {});
    Plan plan = read->plan();
    plan.steps[0].shape.path = PathKind::automatic;
    read = std::make_shared<TransferState>(read->request(), plan);
    engine_->start(read);
    EXPECT_EQ(read->result().error.code, ErrorCode::invalid_argument);
    EXPECT_EQ(read->result().bytes, 0u);
}

TEST_F(EngineOverMemory, wild_device_pointers_fail_the_transfer_and_not_the_worker) {
    make_engine();
    store_->put(1, std::vector<std::byte>(8192));
    std::vector<std::byte> no_device_memory(8192);
    const auto wild = transfer(Direction::read, {{&file_, 0, no_device_memory.data(), 8192, 0}}, {.workers = 1});
    engine_->start(wild);
    EXPECT_FALSE(wild->result().ok());
    const auto fine = transfer(Direction::read, {{&file_, 0, device_bytes(8192), 8192, 0}}, {.workers = 1});
    engine_->start(fine);
    EXPECT_TRUE(fine->result().ok()) << fine->result().error.message();
}

// A path that moves nothing before it is opened, and tells when an operation asks for an offset.
struct Watch {
    std::uint64_t offset = 0;
    std::atomic<bool> open{false}, asked{false};
};
class Watched final : public WrappedPath {
  public:
    Watched(std::unique_ptr<Path> inner, Watch& watch) : WrappedPath(std::move(inner)), watch_(watch) {}
    std::size_t submit(std::span<const Operation> operations) override {
        while (!watch_.open) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        for (const Operation& operation : operations) {
            if (operation.offset_bytes == watch_.offset) watch_.asked = true;
        }
        return WrappedPath::submit(operations);
    }

  private:
    Watch& watch_;
};

// When one transfer follows another, storage must not stand still until the device has all bytes of the first.
TEST_F(EngineOverMemory, the_next_transfer_is_read_while_the_last_is_copied) {
    constexpr std::uint64_t kPart = 64 * kKiB, kSlot = 4 * kPart;
    HostDeviceOptions host;
    host.bandwidth_bytes_per_s = kSlot / 0.2;
    const auto contents = random_bytes(2 * kSlot, 13);
    store_->put(1, contents);
    Watch watch;
    watch.offset = kSlot;
    make_engine_with(
        host, [&](std::unique_ptr<Path> path) { return std::make_unique<Watched>(std::move(path), watch); });
    const Shape shape{.chunk_bytes = kSlot, .part_bytes = kPart, .workers = 2, .depth = 2};
    std::byte* const memory = device_bytes(2 * kSlot);
    const auto first = transfer(Direction::read, {{&file_, 0, memory, kSlot, 0}}, shape);
    const auto second = transfer(Direction::read, {{&file_, kSlot, memory + kSlot, kSlot, 0}}, shape);
    engine_->start(first);
    engine_->start(second);
    watch.open = true;  // the second transfer waits already when the workers of the first are done
    const Deadline until = Deadline::after(std::chrono::seconds(10));
    while (!watch.asked && !until.passed()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_FALSE(first->done());
    EXPECT_EQ(first->result().bytes, kSlot);
    EXPECT_EQ(second->result().bytes, kSlot);
    std::vector<std::byte> got(2 * kSlot);
    copy(CopyDirection::to_host, got.data(), memory, got.size());
    EXPECT_TRUE(got == contents);
    engine_.reset();
}

}  // namespace
}  // namespace penstock::engine
