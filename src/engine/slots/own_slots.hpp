// The slots of a worker that works alone. It serves jobs of one shape, several at a time: while the slots of one job
// drain, those of the next are filled.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/jobs/scheduler.hpp"
#include "engine/slots/slot_source.hpp"

namespace penstock::engine {

class OwnSlots final : public SlotSource {
  public:
    // Serves `first` and then jobs of the same shape.
    OwnSlots(Scheduler& scheduler, StagingSlots& slots, std::shared_ptr<Job> first);

    void leave() override { release_jobs(true); }
    const Shape& shape() const noexcept override { return slots_.shape(); }
    std::uint32_t chunks_at_once() const noexcept override { return shape().depth; }
    bool next(Chunk& chunk, bool may_open) override;
    void stored(Chunk& chunk) override;
    bool copy_lent(const Chunk& chunk, const Piece& piece, const Completion& completion) override;
    bool collect() override;
    bool copying() const noexcept override { return slots_.copying() != 0; }
    void wait_for_copy(Deadline deadline) override { slots_.oldest_copy().wait(deadline); }
    bool idle() const noexcept override { return slots_.all_free(); }
    bool give_up(Chunk& chunk) override;
    void landed(const Chunk& chunk) noexcept override { slots_.landed(chunk.slot); }
    void stop(const ErrorInfo& error) override;
    void abandon() override { slots_.abandon(); }
    bool sound() const noexcept override { return slots_.sound(); }

  private:
    Job* next_of_jobs(Chunk& chunk);
    void release_jobs(bool all);

    Scheduler& scheduler_;
    StagingSlots& slots_;
    std::vector<std::shared_ptr<Job>> jobs_;  // that this worker serves
};

}  // namespace penstock::engine
