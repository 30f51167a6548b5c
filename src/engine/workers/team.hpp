// A team: the workers of one job that fill slots together, part by part, and copy each slot to the device in one piece.
//
// A copy engine pays a fixed time for each copy (2.5 us on an H200: 4 MiB copies reach 53.6 of 55.5 GB/s, 16 MiB ones
// 55.1), while staging memory must stay small enough for the CPU's cache. Shared slots give both: few large slots, and
// parts small enough that all workers are busy on the same slot. When the copy engine has nothing to do, it gets the
// parts that are there.
//
// BusyLimit says how many workers the copy engine needs; the others are parked.
//
// A team begins with two slots. A member that finds all of them taken gets memory for others (grow) instead of waiting,
// one member at a time.
//
// Teams only read. What must stay true: each part is copied exactly once, after it was filled, and a slot is filled
// again only after its copies have ended.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "engine/jobs/scheduler.hpp"
#include "engine/workers/busy_limit.hpp"
#include "engine/workers/pool.hpp"
#include "engine/slots/slot_source.hpp"

namespace penstock::engine {

class Team final : public SlotSource {
  public:
    // Requires: the slots are leased from the pool. They go back to it with the team.
    Team(Scheduler& scheduler, EnginePool& pool, std::unique_ptr<StagingSlots> slots, std::shared_ptr<Job> job);
    ~Team() override;
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    void join() override;
    // The last member to leave waits for the copies under way: then every slot is accounted for. At the end of the job
    // the other members wait too, unless another job needs a worker: the first slots of the next transfer are filled
    // while the last slots of this one are copied.
    void leave() override;
    const Shape& shape() const noexcept override { return job_->shape(); }
    std::uint32_t chunks_at_once() const noexcept override { return 1; }
    // The next part to fill; waits for a free slot. False: no part is left, or the transfer stopped, or this worker was
    // not needed for a while. A member that may open no slot takes parts of open slots only, so that the last member to
    // leave leaves nothing behind.
    bool next(Chunk& part, bool may_open) override;
    // Starts the copy when the part was the slot's last.
    void stored(Chunk& part) override;
    void stop(const ErrorInfo& error) override { job_->transfer().stop(error); }
    // Ends the parts that no worker has taken, without bytes, so that their slots end.
    void abandon() override;

  private:
    // Requires: mutex_, for all of them.
    bool admitted(std::unique_lock<std::mutex>& lock, bool may_open);  // false: not needed
    bool none_left(bool may_open);
    bool open_slot();  // false when the job has no chunk
    void cut_parts(const Chunk& chunk);
    bool grow(std::unique_lock<std::mutex>& lock);  // false when another member does, or there is nothing to get
    void wait_for_slot(std::unique_lock<std::mutex>& lock);
    void take_back(Chunk& part);
    bool engine_waits() const;
    bool collect_finished();

    Scheduler& scheduler_;
    EnginePool& pool_;
    std::unique_ptr<StagingSlots> slots_;
    const std::shared_ptr<Job> job_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool watched_ = false;                // a worker sleeps on the oldest copy's event
    bool grows_ = false;                  // a member gets memory for more slots, or there was none to get
    std::deque<Chunk> parts_;             // of the slot being filled, not handed out yet
    std::uint32_t members_ = 0;
    bool ending_ = false;                 // a member that left waits for all copies: later members need not
    std::uint32_t busy_ = 0;              // members that fill a part or wait for a slot
    BusyLimit limit_;                     // of busy_
    std::condition_variable needed_;      // busy_ or limit_ changed, or the end is near
};

}  // namespace penstock::engine
