// Teams, slots and sessions that meet: budgets that no worker holds, one transfer's mistake, callbacks that throw.
#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <numeric>
#include <random>
#include <stdexcept>
#include <thread>

#include "engine/memory_rig.hpp"
#include "engine/workers/team.hpp"
#include "support/sanitized.hpp"

namespace penstock::engine {
namespace {

using test::EngineOverMemory;
using test::random_bytes;
using test::WrappedPath;

Deadline in_ten_seconds() { return Deadline::after(std::chrono::seconds(10)); }

// The only worker leaves a team for a job that starves; the team's slots must not keep that job from slots of its own.
TEST_F(EngineOverMemory, a_team_that_nobody_serves_gives_its_memory_to_the_next) {
    make_slow_engine(60e6, 6 * kMiB);  // 4 MiB for slots
    store_->put(1, random_bytes(16 * kMiB, 1));
    std::byte* memory = device_bytes(16 * kMiB);
    const Shape first{.chunk_bytes = 1 * kMiB, .part_bytes = 64 * kKiB, .workers = 1, .depth = 4};
    const Shape second{.chunk_bytes = 512 * kKiB, .part_bytes = 64 * kKiB, .workers = 1, .depth = 8};
    const auto large = transfer(Direction::read, {{&file_, 0, memory, 12 * kMiB, 0}}, first);
    const auto other = transfer(Direction::read, {{&file_, 12 * kMiB, memory + 12 * kMiB, 4 * kMiB, 0}}, second);
    engine_->start(large);
    engine_->start(other);
    EXPECT_TRUE(other->wait(in_ten_seconds()));
    EXPECT_TRUE(large->wait(in_ten_seconds()));
    EXPECT_EQ(large->result().bytes, 12 * kMiB);
    EXPECT_LE(engine_->pinned_peak_bytes(), 6 * kMiB);
    std::vector<std::byte> got(16 * kMiB);
    copy(CopyDirection::to_host, got.data(), memory, got.size());
    EXPECT_TRUE(got == store_->contents(1));
}

TEST_F(EngineOverMemory, many_teams_of_many_shapes_share_a_small_budget) {
    make_engine(nullptr, 6 * kMiB);
    store_->put(1, random_bytes(6 * kMiB, 2));
    std::vector<std::shared_ptr<TransferState>> transfers;
    for (std::uint64_t i = 0; i < 12; ++i) {
        Shape shape{.chunk_bytes = (256 + 64 * (i % 4)) * kKiB, .workers = 1 + static_cast<std::uint32_t>(i % 3)};
        shape.depth = 2 + static_cast<std::uint32_t>(i % 3);
        if (i % 2 == 0) shape.part_bytes = 32 * kKiB;
        transfers.push_back(transfer(Direction::read, {{&file_, 0, device_bytes(6 * kMiB), 6 * kMiB, 0}}, shape));
    }
    for (const auto& one : transfers) engine_->start(one);
    for (const auto& one : transfers) {
        ASSERT_TRUE(one->wait(Deadline::after(std::chrono::seconds(120))));
        EXPECT_EQ(one->result().bytes, 6 * kMiB) << one->result().error.message();
    }
    EXPECT_LE(engine_->pinned_peak_bytes(), 6 * kMiB);
}

TEST_F(EngineOverMemory, one_transfers_wild_pointer_does_not_fail_its_neighbour) {
    make_slow_engine(20e6, 64 * kMiB);
    store_->put(1, random_bytes(4 * kMiB, 3));
    const Shape shape{.chunk_bytes = 1 * kMiB, .workers = 1, .depth = 8};
    const auto fine = transfer(Direction::read, {{&file_, 0, device_bytes(4 * kMiB), 4 * kMiB, 0}}, shape);
    std::vector<std::byte> no_device_memory(1 * kMiB);
    const auto wild = transfer(Direction::read, {{&file_, 0, no_device_memory.data(), 1 * kMiB, 0}}, shape);
    engine_->start(fine);
    engine_->start(wild);  // joins the session of the first, whose copies are still under way
    EXPECT_FALSE(wild->result().ok());
    EXPECT_EQ(wild->result().bytes, 0u);
    EXPECT_TRUE(fine->result().ok()) << fine->result().error.message();
    EXPECT_EQ(fine->result().bytes, 4 * kMiB);
}

TEST_F(EngineOverMemory, a_path_that_cannot_be_made_leaves_no_memory_registered) {
    const void* arena = nullptr;
    EngineOptions options;
    options.device = device_.get();
    options.system = &system_;
    options.budget_bytes = 64 * kMiB;
    options.make_path = [&](PathKind, const PathOptions& given) -> std::unique_ptr<Path> {
        arena = given.arena.data();
        EXPECT_TRUE(device_->pointer_info(arena).known);  // the check can see a registration
        throw Error(ErrorCode::unsupported, "make path", "no such path today");
    };
    engine_ = std::make_unique<Engine>(options);
    const auto read = transfer(Direction::read, {{&file_, 0, device_bytes(4096), 4096, 0}}, {.workers = 1});
    engine_->start(read);
    EXPECT_EQ(read->result().error.code, ErrorCode::unsupported);
    EXPECT_FALSE(device_->pointer_info(arena).known);
    EXPECT_EQ(engine_->pinned_bytes(), 0u);
}

TEST_F(EngineOverMemory, a_progress_callback_that_throws_ends_its_transfer_and_nothing_else) {
    make_engine();
    store_->put(1, random_bytes(2 * kMiB, 4));
    std::byte* memory = device_bytes(2 * kMiB);
    for (const std::uint64_t part_bytes : {std::uint64_t{0}, 64 * kKiB}) {
        const Shape shape{.chunk_bytes = 128 * kKiB, .part_bytes = part_bytes, .workers = 2};
        const auto plain = transfer(Direction::read, {{&file_, 0, memory, 2 * kMiB, 0}}, shape);
        TransferRequest request = plain->request();
        request.progress = [](std::uint64_t, std::uint64_t) { throw std::runtime_error("not today"); };
        const auto read = std::make_shared<TransferState>(std::move(request), plain->plan());
        engine_->start(read);
        ASSERT_TRUE(read->wait(in_ten_seconds()));
        EXPECT_FALSE(read->result().ok());
        EXPECT_NE(read->result().error.message().find("not today"), std::string::npos);
        engine_->start(plain);
        EXPECT_TRUE(plain->result().ok());
    }
}

TEST_F(EngineOverMemory, what_fails_at_the_end_of_a_transfer_is_its_error) {
    make_engine();
    store_->put(1, random_bytes(kMiB, 8));
    const auto read = transfer(Direction::read, {{&file_, 0, device_bytes(kMiB), kMiB, 0}}, {.workers = 1});
    read->on_end = [](Outcome&) { throw std::runtime_error("no memory for the evidence"); };
    engine_->start(read);
    ASSERT_TRUE(read->wait(in_ten_seconds()));
    EXPECT_EQ(read->result().error.cause, "no memory for the evidence");
    EXPECT_EQ(read->result().bytes, kMiB);
}

TEST_F(EngineOverMemory, a_deadline_passes_while_the_transfer_waits_for_memory_or_a_worker) {
    make_slow_engine(4e6, 6 * kMiB);
    store_->put(1, random_bytes(4 * kMiB, 5));
    const Shape first{.chunk_bytes = 1 * kMiB, .workers = 1, .depth = 4};
    const auto holds = transfer(Direction::read, {{&file_, 0, device_bytes(4 * kMiB), 4 * kMiB, 0}}, first);
    Shape shape = first;
    shape.workers = 2;
    const auto plain = transfer(Direction::read, {{&file_, 0, device_bytes(1 * kMiB), 1 * kMiB, 0}}, shape);
    TransferRequest request = plain->request();
    request.deadline = Deadline::after(std::chrono::milliseconds(100));
    const auto waits = std::make_shared<TransferState>(std::move(request), plain->plan());
    engine_->start(holds);
    engine_->start(waits);
    EXPECT_TRUE(waits->wait(Deadline::after(std::chrono::milliseconds(600))));
    EXPECT_EQ(waits->result().error.code, ErrorCode::timed_out);
    holds->cancel();
}

TEST_F(EngineOverMemory, a_completion_lost_in_a_team_ends_at_the_deadline_and_frees_the_slots) {
    path::FaultOptions faults;
    faults.script = {{3, path::FaultKind::lose}};
    make_engine(&faults, 6 * kMiB);
    store_->put(1, random_bytes(2 * kMiB, 7));
    const Shape shape{.chunk_bytes = 128 * kKiB, .part_bytes = 32 * kKiB, .workers = 2, .depth = 2};
    const auto plain = transfer(Direction::read, {{&file_, 0, device_bytes(2 * kMiB), 2 * kMiB, 0}}, shape);
    TransferRequest request = plain->request();
    request.deadline = Deadline::after(std::chrono::milliseconds(50));
    const auto hangs = std::make_shared<TransferState>(std::move(request), plain->plan());
    engine_->start(hangs);
    EXPECT_EQ(hangs->result().error.code, ErrorCode::timed_out);
    EXPECT_TRUE(hangs->wait(in_ten_seconds()));  // the workers notice after two seconds without movement
    faults.script.clear();
    make_engine(&faults, 6 * kMiB);
    engine_->start(plain);
    EXPECT_TRUE(plain->result().ok());
}

// Shapes, budgets, errors, cancellations and deadlines all at once, from several threads: every transfer ends, each
// that ended well has its bytes, and the workers go on.
TEST_F(EngineOverMemory, a_storm_of_transfers_leaves_nobody_waiting) {
    path::FaultOptions faults;
    faults.seed = 21;
    faults.short_count = faults.interrupted = faults.again = 0.05;
    make_engine(&faults, 8 * kMiB);
    const auto contents = random_bytes(2 * kMiB, 6);
    store_->put(1, contents);
    std::vector<std::byte*> memories;
    for (int i = 0; i < 6; ++i) memories.push_back(device_bytes(2 * kMiB));
    std::atomic<int> stuck{0}, wrong{0}, good{0};
    const auto user = [&](unsigned seed) {
        std::mt19937_64 random(seed);
        for (int i = 0; i < 25; ++i) {
            Shape shape{.chunk_bytes = (64ull << (random() % 5)) * kKiB};
            shape.workers = static_cast<std::uint32_t>(1 + random() % 4);
            shape.depth = static_cast<std::uint32_t>(1 + random() % 4);
            while (StagingSlots::needed_bytes(shape) > 6 * kMiB) shape.chunk_bytes /= 2;
            if (random() % 2 == 0) shape.part_bytes = (16ull << (random() % 3)) * kKiB;
            const std::uint64_t offset = random() % kMiB;
            const auto plain = transfer(Direction::read, {{&file_, offset, memories[seed], kMiB, 0}}, shape);
            TransferRequest request = plain->request();
            if (random() % 5 == 0) request.deadline = Deadline::after(std::chrono::microseconds(random() % 3000));
            const auto read = std::make_shared<TransferState>(std::move(request), plain->plan());
            engine_->start(read);
            if (random() % 4 == 0) read->cancel();
            if (!read->wait(Deadline::after(std::chrono::seconds(20)))) {
                ++stuck;
                return;
            }
            if (!read->result().ok()) continue;
            ++good;
            std::vector<std::byte> got(kMiB);
            copy(CopyDirection::to_host, got.data(), memories[seed], got.size());
            wrong += !std::equal(got.begin(), got.end(), contents.begin() + static_cast<long>(offset));
        }
    };
    std::vector<std::thread> users;
    for (unsigned seed = 0; seed < memories.size(); ++seed) users.emplace_back(user, seed);
    for (std::thread& one : users) one.join();
    EXPECT_EQ(stuck.load(), 0);
    EXPECT_EQ(wrong.load(), 0);
    EXPECT_GT(good.load(), 30);
    EXPECT_LE(engine_->pinned_peak_bytes(), 8 * kMiB);
}

// A path that holds back the read at one offset until it is opened.
class Gate final : public WrappedPath {
  public:
    Gate(std::unique_ptr<Path> inner, std::uint64_t offset, std::shared_future<void> opened)
        : WrappedPath(std::move(inner)), offset_(offset), opened_(std::move(opened)) {}
    std::size_t submit(std::span<const Operation> operations) override {
        for (const Operation& operation : operations) {
            if (operation.offset_bytes == offset_) opened_.wait_for(std::chrono::seconds(10));
        }
        return WrappedPath::submit(operations);
    }

  private:
    std::uint64_t offset_;
    std::shared_future<void> opened_;
};

#if !defined(__SANITIZE_THREAD__)  // looks at memory while it is copied to
// While the copy engine has nothing to do, the parts of a slot must not wait for the slowest. Behind a busy engine, one
// copy of the whole slot is cheaper.
TEST_F(EngineOverMemory, parts_are_copied_at_once_only_when_the_device_has_nothing_to_do) {
    constexpr std::uint64_t kPart = 64 * kKiB, kSlot = 4 * kPart, kBytes = 3 * kSlot;
    const auto contents = random_bytes(kBytes, 9);
    for (const bool busy : {false, true}) {
        std::promise<void> open;
        const std::shared_future<void> opened = open.get_future().share();
        HostDeviceOptions host;
        if (busy) host.bandwidth_bytes_per_s = kSlot / 0.2;  // the first part takes 50 ms
        store_->put(1, contents);
        make_engine_with(host, [&](std::unique_ptr<Path> path) {
            return std::make_unique<Gate>(std::move(path), kSlot + kPart, opened);
        });
        std::byte* memory = device_bytes(kBytes);
        std::fill_n(memory, kBytes, std::byte{0});
        const Shape shape{.chunk_bytes = kSlot, .part_bytes = kPart, .workers = 2, .depth = 3};
        const auto read = transfer(Direction::read, {{&file_, 0, memory, kBytes, 0}}, shape);
        engine_->start(read);
        const auto there = [&](std::uint64_t at) {
            return std::equal(memory + at, memory + at + kPart, contents.begin() + static_cast<std::ptrdiff_t>(at));
        };
        // The last slot comes whole, after which the device has done all it was given.
        const Deadline until = in_ten_seconds();
        while (!(there(2 * kSlot) && there(kBytes - kPart)) && !until.passed()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        for (const std::uint64_t part : {0, 2, 3}) EXPECT_EQ(there(kSlot + part * kPart), !busy) << part;
        EXPECT_FALSE(there(kSlot + kPart));
        EXPECT_FALSE(read->done());
        open.set_value();
        EXPECT_EQ(read->result().bytes, kBytes);
        std::vector<std::byte> got(kBytes);
        copy(CopyDirection::to_host, got.data(), memory, kBytes);
        EXPECT_TRUE(got == contents);
        engine_.reset();
    }
}
#endif

// A path that takes a millisecond for each operation, and counts how many run at once: the most early in the file, and
// the usual number late in it, because after a stop of the whole process the link is idle and needs more for a moment.
struct AtOnce {
    std::atomic<int> now{0}, early{0};
    std::array<std::atomic<int>, 16> late{};  // operations that were so many at once

    int usual() const {
        const int half = std::accumulate(late.begin(), late.end(), 0) / 2;
        std::size_t number = 0;
        for (int seen = late[0]; seen <= half; seen += late.at(number)) ++number;
        return static_cast<int>(number);
    }
};
class Counting final : public WrappedPath {
  public:
    Counting(std::unique_ptr<Path> inner, AtOnce& at_once, std::uint64_t file_bytes)
        : WrappedPath(std::move(inner)), at_once_(at_once), file_bytes_(file_bytes) {}
    std::size_t submit(std::span<const Operation> operations) override {
        const int now = ++at_once_.now;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        for (const Operation& operation : operations) {
            if (operation.offset_bytes < file_bytes_ / 8) at_once_.early = std::max(at_once_.early.load(), now);
            const bool last_slot = operation.offset_bytes >= file_bytes_ - file_bytes_ / 32;  // all hands again
            if (operation.offset_bytes > file_bytes_ / 4 * 3 && !last_slot) {
                ++at_once_.late[static_cast<std::size_t>(std::min(now, 15))];
            }
        }
        const std::size_t count = WrappedPath::submit(operations);
        --at_once_.now;
        return count;
    }

  private:
    AtOnce& at_once_;
    std::uint64_t file_bytes_;
};

#if !defined(__SANITIZE_THREAD__)  // writes to memory that must not be written to any more
TEST_F(EngineOverMemory, a_refused_part_ends_its_transfer_only_when_the_others_are_still) {
    constexpr std::uint64_t kPart = 64 * kKiB;
    make_slow_engine(kPart / 0.2, 64 * kMiB);
    store_->put(1, random_bytes(2 * kPart, 12));
    std::byte* memory = device_bytes(kPart);
    std::vector<std::byte> no_device_memory(kPart);
    const Shape shape{.chunk_bytes = 2 * kPart, .part_bytes = kPart, .workers = 1, .depth = 2};
    const auto read = transfer(
        Direction::read, {{&file_, 0, memory, kPart, 0}, {&file_, kPart, no_device_memory.data(), kPart, 0}}, shape);
    engine_->start(read);
    ASSERT_TRUE(read->wait(in_ten_seconds()));
    EXPECT_FALSE(read->result().ok());
    std::fill_n(memory, kPart, std::byte{0x55});  // the caller's again
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    EXPECT_TRUE(std::all_of(memory, memory + kPart, [](std::byte byte) { return byte == std::byte{0x55}; }));
}
#endif

// A worker stuck in a slow read counts as busy; the parked ones must not wait for it.
TEST_F(EngineOverMemory, parked_workers_take_over_when_the_busy_ones_are_stuck) {
    constexpr std::uint64_t kPart = 64 * kKiB, kSlot = 4 * kPart, kBytes = 40 * kSlot;
    HostDeviceOptions host;
    host.bandwidth_bytes_per_s = kSlot / 5e-3;  // one worker is enough, and the other is parked
    store_->put(1, random_bytes(kBytes, 11));
    std::promise<void> open;
    const std::shared_future<void> opened = open.get_future().share();
    make_engine_with(host, [&](std::unique_ptr<Path> path) {
        return std::make_unique<Gate>(std::move(path), 20 * kSlot, opened);
    });
    const Shape shape{.chunk_bytes = kSlot, .part_bytes = kPart, .workers = 2, .depth = 3};
    const auto read = transfer(Direction::read, {{&file_, 0, device_bytes(kBytes), kBytes, 0}}, shape);
    engine_->start(read);
    const Deadline until = in_ten_seconds();
    // All but the slot with the part held back.
    while (read->bytes_done() < kBytes - kSlot && !until.passed()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(read->bytes_done(), kBytes - kSlot);
    open.set_value();
    EXPECT_EQ(read->result().bytes, kBytes);
    engine_.reset();
}

// A slow link needs few workers after the start; a fast link keeps them all. Slots are small, so that the link is fast
// also where the processor copies slowly: under a sanitizer, two cores copied larger slots as slowly as the slow link.
TEST_F(EngineOverMemory, as_many_workers_stay_busy_as_the_link_needs) {
    constexpr std::uint64_t kSlot = 64 * kKiB, kBytes = 96 * kSlot;
    store_->put(1, random_bytes(kBytes, 10));
    int busy_on_slow_link = 0;
    for (const bool slow_link : {true, false}) {
        HostDeviceOptions host;
        if (slow_link) host.bandwidth_bytes_per_s = kSlot / 8e-3;  // 16 parts of a millisecond: two workers would do
        AtOnce at_once;
        make_engine_with(host, [&](std::unique_ptr<Path> path) {
            return std::make_unique<Counting>(std::move(path), at_once, kBytes);
        });
        const Shape shape{.chunk_bytes = kSlot, .part_bytes = kSlot / 16, .workers = 12, .depth = 6};
        const auto read = transfer(Direction::read, {{&file_, 0, device_bytes(kBytes), kBytes, 0}}, shape);
        engine_->start(read);
        EXPECT_EQ(read->result().bytes, kBytes);
        EXPECT_GE(at_once.early.load(), 9);
        if (slow_link) {
            busy_on_slow_link = at_once.usual();
            EXPECT_LE(busy_on_slow_link, 7);
        } else if (penstock::test::kSanitized) {  // its copies take so long that a few workers are never seen together
            EXPECT_GT(at_once.usual(), busy_on_slow_link);
        } else {
            EXPECT_GE(at_once.usual(), 9);
        }
        engine_.reset();
    }
}

TEST(Copies, join_neighbours_within_one_allocation_only) {
    std::vector<std::byte> slot(256);
    std::vector<std::byte> memory(256);
    std::vector<Piece> pieces(2);
    for (std::size_t i = 0; i < 2; ++i) {
        pieces[i].memory = memory.data() + 128 * i;
        pieces[i].operation_memory = slot.data() + 128 * i;
        pieces[i].bytes = pieces[i].operation_bytes = pieces[i].moved_bytes = 128;
    }
    std::vector<CopyPiece> copies;
    gather_copies(pieces, copies);
    EXPECT_EQ(copies.size(), 1u);
    pieces[1].allocation = memory.data() + 128;
    gather_copies(pieces, copies);
    EXPECT_EQ(copies.size(), 2u);
}

}  // namespace
}  // namespace penstock::engine
