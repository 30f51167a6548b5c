// A session: one worker moves chunks of one shape between storage and the slots of its SlotSource, by its path.
//
// The path works on several chunks at once. Short counts, EINTR and EAGAIN are submitted again here, for every path.
// Nothing else in the engine touches a path.
//
// A transfer that was stopped does not wait for reads into staging memory that the system does not end: they are given
// up, their slots stay taken until they come, and nothing of them is used.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/jobs/scheduler.hpp"
#include "engine/slots/slot_source.hpp"
#include "engine/workers/worker_path.hpp"
#include "os/system.hpp"

namespace penstock::engine {

class Session {
  public:
    Session(Scheduler& scheduler, WorkerPath& path, SlotSource& slots, os::System& system);
    // Serves jobs until none is left. False when operations hung or the device failed: the path must go, and the slots
    // that belong to it.
    bool run();

  private:
    bool serve_all();  // false: operations hung
    bool start_next();
    void push_operation(std::uint32_t chunk, std::uint32_t piece);
    bool flush();
    bool reap(Deadline deadline);
    bool advance();
    void wait_for_something();
    void complete(const Completion& completion);
    void complete_piece(Chunk& chunk);
    void retry_or_fail(Chunk& chunk, const Completion& completion);
    void abandon_all();
    bool idle() const noexcept { return busy_chunks_ == 0 && slots_.idle(); }
    bool hung();
    void give_up_stopped();
    void give_up(std::uint32_t chunk);
    void leave_storage(Chunk& chunk);
    void land_given_up(Chunk& chunk);
    bool waiting_jobs_due();

    Scheduler& scheduler_;
    WorkerPath& path_;
    SlotSource& slots_;
    os::System& system_;
    const Shape shape_;
    const Capabilities capabilities_;
    std::vector<Chunk> chunks_;  // in storage; those without a job are free. Operations' tags tell their places here.
    std::vector<Operation> backlog_;
    std::vector<Completion> completions_;
    std::uint32_t busy_chunks_ = 0;
    std::uint64_t storage_in_flight_ = 0;
    bool yielding_ = false;
    Clock::time_point quantum_end_;
    Clock::time_point last_movement_;
    Clock::time_point last_look_;  // of give_up_stopped()
};

}  // namespace penstock::engine
