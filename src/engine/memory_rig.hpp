// An engine over files held in memory, on the emulated device: the ground of the tests in this folder.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "engine/engine.hpp"
#include "path/memory_store.hpp"
#include "support/decorators/fault.hpp"

namespace penstock::engine::test {

inline std::vector<std::byte> random_bytes(std::uint64_t count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<std::byte> bytes(count);
    for (std::uint64_t at = 0; at < count; at += 8) {  // eight of a number: tests are not optimised
        const std::uint64_t word = random();
        std::memcpy(bytes.data() + at, &word, std::min<std::uint64_t>(8, count - at));
    }
    return bytes;
}

// A path that hands everything to another; tests override what they change.
class WrappedPath : public Path {
  public:
    explicit WrappedPath(std::unique_ptr<Path> inner) : inner_(std::move(inner)) {}
    const Capabilities& capabilities() const noexcept override { return inner_->capabilities(); }
    std::size_t submit(std::span<const Operation> operations) override { return inner_->submit(operations); }
    std::size_t reap(std::span<Completion> completions, Deadline deadline) override {
        return inner_->reap(completions, deadline);
    }

  private:
    std::unique_ptr<Path> inner_;
};

class EngineOverMemory : public testing::Test {
  protected:
    EngineOverMemory() { file_.id = 1, file_.name = "memory", file_.writable = true; }
    void make_engine(const path::FaultOptions* faults = nullptr, std::uint64_t budget_bytes = 64 * kMiB) {
        EngineOptions options;
        options.device = device_.get();
        options.system = &system_;
        options.budget_bytes = budget_bytes;
        options.make_path = [this, faults](PathKind kind, PathOptions path_options) {
            path_options.store = store_;
            auto path = make_path(kind, path_options);
            return faults != nullptr ? path::faulty(std::move(path), *faults) : std::move(path);
        };
        engine_ = std::make_unique<Engine>(options);
    }
    // An engine over a new emulated device, with each path wrapped. Ends the engine before it and frees its memory.
    void make_engine_with(const HostDeviceOptions& host,
                          const std::function<std::unique_ptr<Path>(std::unique_ptr<Path>)>& wrap) {
        engine_.reset();
        allocated_.clear();
        device_ = make_host_device(host);
        EngineOptions options;
        options.device = device_.get();
        options.system = &system_;
        options.budget_bytes = 64 * kMiB;
        options.make_path = [this, wrap](PathKind kind, PathOptions path_options) {
            path_options.store = store_;
            return wrap(make_path(kind, path_options));
        };
        engine_ = std::make_unique<Engine>(options);
    }
    // A transfer of the whole of `ranges` in one step.
    std::shared_ptr<TransferState> transfer(Direction direction, std::vector<RequestRange> ranges, Shape shape) {
        TransferRequest request;
        request.direction = direction;
        Step step;
        shape.path = PathKind::memory;
        shape.direction = direction;
        step.shape = shape;
        std::uint64_t position = 0;
        for (RequestRange& range : ranges) {
            range.position = position;
            position += range.bytes;
            step.pieces.push_back({static_cast<std::uint64_t>(&range - ranges.data()), 0, range.bytes});
        }
        request.ranges = std::move(ranges);
        Plan plan;
        plan.steps.push_back(std::move(step));
        return std::make_shared<TransferState>(std::move(request), std::move(plan));
    }
    // The emulated device, slow: copies take time, so that what overlaps is known.
    void make_slow_engine(double bytes_per_s, std::uint64_t budget_bytes) {
        HostDeviceOptions slow;
        slow.bandwidth_bytes_per_s = bytes_per_s;
        device_ = make_host_device(slow);
        make_engine(nullptr, budget_bytes);
    }
    std::byte* device_bytes(std::uint64_t bytes) {
        void* memory = device_->allocate(MemoryKind::device, bytes);
        allocated_.emplace_back(memory, [this](void* p) { device_->release(MemoryKind::device, p); });
        return static_cast<std::byte*>(memory);
    }
    void copy(CopyDirection direction, void* to, const void* from, std::uint64_t bytes) {
        const auto stream = device_->make_stream();
        stream->copy(direction, to, from, bytes);
        stream->synchronize();
    }
    std::shared_ptr<Device> device_ = make_host_device();
    os::System system_;
    std::shared_ptr<path::MemoryStore> store_ = std::make_shared<path::MemoryStore>();
    FileHandle file_;
    std::vector<std::shared_ptr<void>> allocated_;
    std::unique_ptr<Engine> engine_;
};

}  // namespace penstock::engine::test
