// Operations that the system does not end: the engine waits for them when it closes, and transfers must not.
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "engine/memory_rig.hpp"

namespace penstock::engine {
namespace {

using test::EngineOverMemory;
using test::random_bytes;
using test::WrappedPath;

constexpr auto kSoon = std::chrono::seconds(20);  // for what takes a fifth of one on an idle machine

constexpr std::uint64_t kHangFrom = 32 * kKiB;

struct Hanging {
    std::atomic<bool> released{false};
    std::atomic<std::uint64_t> operations{0};  // that hang or have hung
};

// An asynchronous path whose operations from kHangFrom on are under way until they are released.
class HangingPath final : public WrappedPath {
  public:
    HangingPath(std::unique_ptr<Path> inner, Hanging& hanging) : WrappedPath(std::move(inner)), hanging_(hanging) {
        capabilities_ = WrappedPath::capabilities();
        capabilities_.asynchronous = true;
        capabilities_.max_in_flight = 64;
    }
    ~HangingPath() override {
        while (!held_.empty() && !hanging_.released) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const Capabilities& capabilities() const noexcept override { return capabilities_; }
    std::size_t submit(std::span<const Operation> operations) override {
        held_.insert(held_.end(), operations.begin(), operations.end());
        for (const Operation& one : operations) hanging_.operations += one.offset_bytes >= kHangFrom ? 1 : 0;
        return operations.size();
    }
    std::size_t reap(std::span<Completion> completions, Deadline deadline) override {
        for (;;) {
            for (auto it = held_.begin(); it != held_.end(); ++it) {
                if (it->offset_bytes >= kHangFrom && !hanging_.released) continue;
                const Operation one = *it;
                held_.erase(it);
                while (WrappedPath::submit({&one, 1}) == 0) WrappedPath::reap(completions, Deadline::now());
                return WrappedPath::reap(completions, Deadline::now());
            }
            if (held_.empty() || deadline.passed()) return 0;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }

  private:
    Hanging& hanging_;
    Capabilities capabilities_;
    std::vector<Operation> held_;
};

class Hung : public EngineOverMemory {
  protected:
    Hung() {
        contents_ = random_bytes(64 * kKiB, 1);
        store_->put(1, contents_);
        make_engine_with({}, [this](std::unique_ptr<Path> path) {
            return std::make_unique<HangingPath>(std::move(path), hanging_);
        });
    }
    ~Hung() override {
        hanging_.released = true;
        engine_.reset();
    }
    void wait_for_hanging(std::uint64_t operations) const {
        const Deadline end = Deadline::after(kSoon);
        while (hanging_.operations < operations && !end.passed()) std::this_thread::yield();
        ASSERT_GE(hanging_.operations, operations);
    }
    std::shared_ptr<TransferState> started(std::uint64_t offset, std::byte* memory, std::uint64_t bytes) {
        Shape shape;
        shape.chunk_bytes = 4 * kKiB;
        shape.workers = 4;  // two chunks keep two workers: the next transfer finds a third
        shape.depth = 8;
        auto begun = transfer(Direction::read, {{&file_, offset, memory, bytes, 0}}, shape);
        engine_->start(begun);
        return begun;
    }
    std::vector<std::byte> bytes_at(const std::byte* memory, std::uint64_t bytes) {
        std::vector<std::byte> got(bytes);
        copy(CopyDirection::to_host, got.data(), memory, bytes);
        return got;
    }
    std::vector<std::byte> wanted(std::uint64_t offset, std::uint64_t bytes) const {
        const auto from = contents_.begin() + static_cast<long>(offset);
        return {from, from + static_cast<long>(bytes)};
    }
    std::vector<std::byte> contents_;
    Hanging hanging_;
};

TEST_F(Hung, a_cancelled_read_does_not_wait_for_them_and_nothing_of_them_is_used) {
    std::byte* memory = device_bytes(64 * kKiB);
    const auto stuck = started(32 * kKiB, memory, 8 * kKiB);
    const auto behind = started(48 * kKiB, memory + 16 * kKiB, 8 * kKiB);
    wait_for_hanging(4);
    engine_->cancel(*behind);
    ASSERT_TRUE(behind->wait(Deadline::after(kSoon)));
    EXPECT_EQ(behind->result().error.code, ErrorCode::cancelled);
    EXPECT_EQ(behind->result().bytes, 0u);
    EXPECT_FALSE(stuck->done());
    std::vector<std::byte> mine = random_bytes(8 * kKiB, 2);  // the memory is the caller's again
    copy(CopyDirection::to_device, memory + 16 * kKiB, mine.data(), mine.size());
    hanging_.released = true;
    ASSERT_TRUE(stuck->wait(Deadline::after(kSoon)));
    EXPECT_TRUE(stuck->result().ok());
    EXPECT_TRUE(bytes_at(memory, 8 * kKiB) == wanted(32 * kKiB, 8 * kKiB));
    const auto next = started(0, memory + 32 * kKiB, 16 * kKiB);  // may use slots that were given up
    ASSERT_TRUE(next->wait(Deadline::after(kSoon)));
    EXPECT_TRUE(bytes_at(memory + 32 * kKiB, 16 * kKiB) == wanted(0, 16 * kKiB));
    EXPECT_TRUE(bytes_at(memory + 16 * kKiB, 8 * kKiB) == mine) << "a late completion was copied";
}

TEST_F(Hung, a_read_ends_at_its_deadline) {
    std::byte* memory = device_bytes(8 * kKiB);
    Shape shape;
    shape.chunk_bytes = 4 * kKiB;
    shape.workers = 1;
    shape.depth = 2;
    TransferRequest request;
    request.ranges = {{&file_, 32 * kKiB, memory, 8 * kKiB, 0}};
    request.deadline = Deadline::after(std::chrono::milliseconds(20));
    shape.path = PathKind::memory;
    Step step;
    step.shape = shape;
    step.pieces.push_back({0, 0, 8 * kKiB});
    Plan plan;
    plan.steps.push_back(std::move(step));
    const auto late = std::make_shared<TransferState>(std::move(request), std::move(plan));
    engine_->start(late);
    ASSERT_TRUE(late->wait(Deadline::after(kSoon))) << "done, not only overdue";
    EXPECT_EQ(late->result().error.code, ErrorCode::timed_out);
}

TEST_F(Hung, files_and_memory_of_what_was_given_up_stay_until_it_lands) {
    const auto kept = std::make_shared<int>(1);
    std::byte* memory = device_bytes(4 * kKiB);
    TransferRequest request;
    request.ranges = {{&file_, 32 * kKiB, memory, 4 * kKiB, 0}};
    request.keep_alive = {kept};
    Step step;
    step.shape.path = PathKind::memory;
    step.shape.chunk_bytes = 4 * kKiB;
    step.shape.workers = step.shape.depth = 1;
    step.pieces.push_back({0, 0, 4 * kKiB});
    Plan plan;
    plan.steps.push_back(std::move(step));
    auto one = std::make_shared<TransferState>(std::move(request), std::move(plan));
    engine_->start(one);
    wait_for_hanging(1);
    engine_->cancel(*one);
    ASSERT_TRUE(one->wait(Deadline::after(kSoon)));
    one.reset();
    EXPECT_EQ(kept.use_count(), 2);
    hanging_.released = true;
    const Deadline end = Deadline::after(kSoon);
    while (kept.use_count() > 1 && !end.passed()) std::this_thread::yield();
    EXPECT_EQ(kept.use_count(), 1);
}

TEST_F(Hung, the_engine_says_that_it_would_wait_for_them) {
    const auto stuck = started(32 * kKiB, device_bytes(8 * kKiB), 8 * kKiB);
    wait_for_hanging(2);
    EXPECT_FALSE(engine_->stop(Deadline::after(std::chrono::milliseconds(50))));
    EXPECT_FALSE(stuck->done());
    hanging_.released = true;
    EXPECT_TRUE(engine_->stop(Deadline::after(kSoon)));
}

}  // namespace
}  // namespace penstock::engine
