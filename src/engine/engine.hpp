// The engine: executes plans with worker threads, within a memory budget.
//
// Workers start on demand and live as long as the engine. The destructor cancels jobs that have not started, waits for
// the others, and joins every thread. It waits for ever when the system does not end an operation; stop() tells before.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "engine/engine_options.hpp"
#include "engine/inline.hpp"
#include "engine/jobs/scheduler.hpp"
#include "engine/workers/pool.hpp"

namespace penstock::engine {

class Engine {
  public:
    static constexpr std::uint64_t kBudgetMin = 2 * kStagingStep;
    // Such lanes take a sixteenth of the budget: 32 lanes of the default budget, none of a small one.
    static constexpr std::size_t large_lanes(std::uint64_t budget_bytes) {
        const std::uint64_t share = budget_bytes / 16 / kStagingStep * kStagingStep;
        return std::min<std::size_t>(share / InlineLanes::kLargeSlotBytes, 32);
    }
    // What plans may use of a budget: the inline lanes' slots are part of it.
    static constexpr std::uint64_t staging_budget(std::uint64_t budget_bytes) {
        return budget_bytes - kStagingStep - large_lanes(budget_bytes) * InlineLanes::kLargeSlotBytes;
    }

    explicit Engine(EngineOptions options);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // Queues the transfer's steps; an inline plan is executed before this returns. A transfer without steps ends here.
    void start(const std::shared_ptr<TransferState>& transfer);
    // A read through a slot on the calling thread. False: not all bytes came, or the device failed.
    bool read_small(int fd, std::uint64_t offset_bytes, std::span<std::byte> device_memory,
                    std::optional<std::uintptr_t> after) {
        return inline_.read_small(fd, offset_bytes, device_memory, after);
    }
    // The same for many ranges, of at most InlineLanes::kSlotBytes each, which become few copies.
    bool read_many(std::span<const RequestRange> ranges) {
        return lanes().read_many(ranges);
    }
    // One read of any size, of parts that `read_part` brings while the part before is copied.
    bool read_by_halves(std::span<std::byte> device_memory, const InlineLanes::ReadPart& read_part) {
        return lanes().read_by_halves(device_memory, read_part);
    }
    // Registered memory for a caller who copies from it by himself, or none. It goes before the engine does.
    EnginePool::LentStaging lend(std::uint64_t bytes) noexcept { return pool_.lend(bytes); }
    // Ends the transfer soon; at once when no worker serves it yet.
    void cancel(TransferState& transfer);
    // Fills all staging memory. False: at the deadline some of it was in use, and not all is filled.
    bool fill_staging(int byte_value, Deadline deadline);
    bool runs_here();  // the calling thread is one of the workers
    // Cancels jobs that have not started. True: all workers have ended by the deadline. Requires: no start() after it.
    bool stop(Deadline deadline);
    std::uint64_t pinned_bytes() const { return pool_.held_bytes() + lanes_bytes(); }
    std::uint64_t pinned_peak_bytes() const { return pool_.peak_bytes() + lanes_bytes(); }

  private:
    void ensure_workers(std::uint32_t count);
    bool have_workers();
    void work(std::uint32_t worker);
    std::shared_ptr<Team> join_team(const std::shared_ptr<Job>& job, const std::function<bool()>& give_up);
    std::unique_ptr<WorkerPath> lease_alone(Job& job, std::uint32_t worker, const std::function<bool()>& give_up);
    void serve(const std::shared_ptr<Job>& job, std::uint32_t worker);
    InlineLanes& lanes() { return large_lanes(options_.budget_bytes) != 0 ? large_ : inline_; }
    std::uint64_t lanes_bytes() const { return inline_.pinned_bytes() + large_.pinned_bytes(); }

    EngineOptions options_;
    EnginePool pool_;
    InlineLanes inline_;
    InlineLanes large_;
    Scheduler scheduler_;
    std::mutex workers_mutex_;
    std::condition_variable worker_ended_;
    std::vector<std::thread> workers_;
    std::size_t ended_ = 0;  // workers
};

}  // namespace penstock::engine
