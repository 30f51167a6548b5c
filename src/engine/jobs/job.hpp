// A job: one step of one transfer, as the scheduler hands it to workers.
//
// Chunks leave a job under its mutex; `lanes` counts the workers on it and `in_flight` the chunks not yet ended. The
// job ends (and leaves its transfer) when it is exhausted, or its transfer stopped, and no chunk is in flight.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "engine/jobs/cutter.hpp"
#include "engine/transfer_state.hpp"

namespace penstock::engine {

class Team;

class Job {
  public:
    Job(std::shared_ptr<TransferState> transfer, std::size_t step, CutRules rules)
        : transfer_(std::move(transfer)),
          step_(step),
          cutter_(transfer_->request().ranges, transfer_->plan().steps[step].pieces, rules) {}

    const Shape& shape() const noexcept { return transfer_->plan().steps[step_].shape; }
    TransferState& transfer() const noexcept { return *transfer_; }

    // The next chunk; false when there is none left. A stopped transfer gives none, and records that the rest was not
    // moved.
    bool next(Chunk& chunk) {
        const std::lock_guard lock(mutex_);
        transfer_->check_deadline();
        if (transfer_->stopped() && !cutter_.empty()) {
            transfer_->short_at(cutter_.position());
            exhausted_ = true;
        }
        if (exhausted_ || !cutter_.next(chunk)) {
            exhausted_ = true;
            return false;
        }
        ++in_flight_;
        return true;
    }
    // Ends one chunk.
    void finish_chunk() {
        const std::lock_guard lock(mutex_);
        --in_flight_;
    }
    bool exhausted() {
        const std::lock_guard lock(mutex_);
        return exhausted_ || cutter_.empty() || transfer_->stopped();
    }
    // True once, for the caller that must make the job leave its transfer.
    bool ends_now() {
        const std::lock_guard lock(mutex_);
        if (transfer_->stopped() && !cutter_.empty()) {
            transfer_->short_at(cutter_.position());
            exhausted_ = true;
        }
        if (left_ || in_flight_ != 0 || !(exhausted_ || cutter_.empty())) return false;
        left_ = true;
        return true;
    }

    // The team of this job. The first worker calls `make`, which may answer nullptr; the others wait meanwhile. Only
    // members hold the team: a job that all workers have left must not keep staging memory from other jobs.
    template <typename Make>
    std::shared_ptr<Team> team(const Make& make) {
        const std::lock_guard lock(team_mutex_);
        std::shared_ptr<Team> team = team_.lock();
        if (!team) team_ = team = make();
        return team;
    }

    std::uint32_t lanes = 0;  // workers on it; guarded by the scheduler's mutex

  private:
    std::shared_ptr<TransferState> transfer_;
    std::size_t step_;
    std::mutex mutex_;
    Cutter cutter_;
    std::uint64_t in_flight_ = 0;
    bool exhausted_ = false;
    bool left_ = false;
    std::mutex team_mutex_;
    std::weak_ptr<Team> team_;
};

}  // namespace penstock::engine
