// A session: one worker moves chunks of one shape, storage and device overlapped over the slots of a station.
//
// A slot goes free -> storage -> copying -> free for reads and free -> copying -> storage -> free for writes; without
// staging there is no copying, and with lent memory the copy starts as soon as the path answers. Short counts, EINTR
// and EAGAIN are resubmitted here, for every path. Nothing else in the engine touches a path.
//
// A transfer that was stopped does not wait for reads into staging memory that the system does not end: they are given
// up, their slots stay taken until they come, and nothing of them is used.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "engine/jobs/scheduler.hpp"
#include "engine/workers/station.hpp"
#include "engine/workers/team.hpp"
#include "os/system.hpp"

namespace penstock::engine {

class Session {
  public:
    // With a team, its shared slots are filled instead of the station's own.
    Session(Scheduler& scheduler, Station& station, os::System& system, std::shared_ptr<Team> team = nullptr);
    // Serves `first` and jobs of the same shape until none is left. False when operations hung or the device failed:
    // the station must go.
    bool run(std::shared_ptr<Job> first);

  private:
    enum class Phase : std::uint8_t { free, storage, copying, given_up };
    struct Slot {
        Phase phase = Phase::free;
        Chunk chunk;
        std::size_t job = 0;          // index in jobs_
        std::uint32_t open_pieces = 0;
        bool copied_from_lent = false;
        Clock::time_point stopped_since{};  // when its transfer was first seen to be stopped
        std::vector<std::shared_ptr<void>> kept{};  // given up: files and memory that its operations use
        std::byte* shared_memory = nullptr;  // with a team: the shared slot, and its number
        std::uint32_t shared_slot = 0;
    };
    struct Held {
        std::shared_ptr<Job> job;
        std::uint32_t chunks = 0;  // of it in flight here
    };

    bool serve_all();  // false: operations hung
    void leave_team();
    bool start_next(std::uint32_t index);
    bool start_part(std::uint32_t index);
    void hand_over(std::uint32_t index);
    Held* next_source(Chunk& chunk);
    void start_storage(std::uint32_t index);
    void push_operation(std::uint32_t index, std::uint32_t piece);
    bool flush();
    bool reap(Deadline deadline);
    bool poll_copies();
    bool advance();
    void wait_for_something();
    void complete(const Completion& completion);
    void complete_piece(std::uint32_t index, Piece& piece);
    void retry_or_fail(std::uint32_t index, std::uint32_t piece_index, const Completion& completion);
    bool copy_lent(Slot& slot, Piece& piece, const Completion& completion);  // false: the device refused
    void check_lent(const Slot& slot, Piece& piece);
    void storage_done(std::uint32_t index);
    void copies_to_device(std::uint32_t index);
    void copies_to_host(std::uint32_t index);
    void start_copy(std::uint32_t index);
    bool queue_copies(std::uint32_t index);
    void finish(std::uint32_t index);
    void abandon_all();
    void release_finished_jobs(bool all);
    bool idle() const noexcept { return busy_slots_ == 0; }
    bool hung();
    void give_up_stopped();
    void give_up(std::uint32_t index);
    void land_given_up(Slot& slot);
    std::byte* operation_memory(std::uint32_t index, const Piece& piece) const;
    TransferState& transfer_of(const Slot& slot) const { return jobs_[slot.job].job->transfer(); }
    bool waiting_jobs_due();

    Scheduler& scheduler_;
    Station& station_;
    os::System& system_;
    const std::shared_ptr<Team> team_;
    bool left_team_ = false;
    const Shape shape_;
    const Capabilities capabilities_;
    std::vector<Held> jobs_;  // entries without a job are reused
    std::vector<Slot> slots_;
    std::vector<Operation> backlog_;
    std::vector<Completion> completions_;
    std::vector<CopyPiece> copy_pieces_;
    std::deque<std::uint32_t> copying_;  // slots, oldest first
    std::uint32_t busy_slots_ = 0;
    std::uint64_t storage_in_flight_ = 0;
    bool yielding_ = false;
    bool spent_ = false;  // the device refused a copy: what is under way ends, then the station goes
    Clock::time_point quantum_end_;
    Clock::time_point last_movement_;
    Clock::time_point last_look_;  // of give_up_stopped()
};

}  // namespace penstock::engine
