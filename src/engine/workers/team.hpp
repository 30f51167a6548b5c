// A team: the workers of one job that fill slots together, part by part, and copy each slot to the device in one piece.
//
// A copy engine pays a fixed time for each copy (2.5 us on an H200: 4 MiB copies reach 53.6 of 55.5 GB/s, 16 MiB ones
// 55.1), while staging memory must stay small enough for the CPU's cache. Shared slots give both: few large slots, and
// parts small enough that all workers are busy on the same slot. When the copy engine has nothing to do, it gets the
// parts that are there.
//
// As many workers are busy as the engine needs (BusyLimit), the others are parked.
//
// Reads only. What must stay true: each part is copied exactly once, after it was filled, and a slot is handed out
// again only after its copies.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "engine/jobs/job.hpp"
#include "engine/workers/busy_limit.hpp"
#include "engine/workers/station.hpp"

namespace penstock::engine {

// A part of a slot, for one worker. Pieces' slot offsets count from the start of the slot.
struct Part {
    Chunk chunk;
    std::byte* memory = nullptr;  // the slot
    std::uint32_t slot = 0;
};

class Team {
  public:
    // The station's slots are the shared ones; it goes back to the pool with the team. The job outlives the team.
    Team(StationPool& pool, std::unique_ptr<Station> station, Job& job);
    ~Team();
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    // A worker joins before its first part and leaves after its last. The last of them waits for copies under way: the
    // slots are then all accounted for. The others do so too at the end of the job, unless they are wanted elsewhere:
    // the first slots of the next transfer are filled while the last ones of this are copied.
    void join();
    void leave(const std::function<bool()>& wanted_elsewhere);
    // The next part to fill; waits for a free slot. False: none is left, or the transfer stopped, or this worker was
    // not needed for a while. A member about to leave opens no slot: it takes parts of open ones only, so that the last
    // to leave leaves nothing behind.
    bool next(Part& part, bool may_open = true);
    // The worker is done with the part; pieces say how much arrived. Starts the copy when it was the slot's last.
    void filled(const Part& part);
    // A worker that must leave early: parts nobody has yet are given up, so that their slots end.
    void give_up();

  private:
    struct Slot {
        enum class Phase : std::uint8_t { free, filling, copying } phase = Phase::free;
        std::vector<Piece> pieces;        // as the parts brought them back
        std::size_t queued = 0;           // of them: their copies are in the stream
        std::uint32_t parts_open = 0;     // handed out or still to hand out
        std::optional<Error> failure{};   // of the copy of a part
    };
    bool admitted(std::unique_lock<std::mutex>& lock, bool may_open);  // false: not needed
    bool none_left(bool may_open);         // needs lock
    bool open_slot();                      // needs lock; false when the job has no chunk
    void cut_parts(const Chunk& chunk);    // needs lock; fills parts_
    void wait_for_slot(std::unique_lock<std::mutex>& lock);
    void take_back(const Part& part);      // needs lock
    void start_copy(std::uint32_t index);  // needs lock
    bool engine_waits();                   // needs lock
    void copy_early(std::uint32_t index);  // needs lock
    void queue_copies(std::uint32_t index);  // needs lock; of the pieces that are not queued yet
    void fail(std::uint32_t index, const Error& error);  // needs lock
    void finish(std::uint32_t index);      // needs lock
    bool collect_finished();               // needs lock

    StationPool& pool_;
    std::unique_ptr<Station> station_;
    Job& job_;
    const std::uint64_t part_bytes_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool watched_ = false;                 // a worker sleeps on the oldest copy's event
    std::vector<Slot> slots_;
    std::deque<Part> parts_;              // of the slot being filled, not handed out yet
    std::deque<std::uint32_t> copying_;   // slots, oldest first
    std::optional<std::uint32_t> newest_{};  // the slot whose event was recorded last
    std::vector<CopyPiece> copy_pieces_;
    std::uint32_t members_ = 0;
    bool ending_ = false;                 // one that left waits for all copies: who joins and leaves later need not
    std::uint32_t busy_ = 0;              // members that fill a part or wait for a slot
    BusyLimit limit_;                     // of busy_
    std::condition_variable needed_;      // busy_ or limit_ changed, or the end is near
    bool sound_ = true;                   // the device has not failed
};

}  // namespace penstock::engine
