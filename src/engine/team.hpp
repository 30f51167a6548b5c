// A team: the workers of one job that fill slots together, part by part, and copy each slot to the device in one piece.
//
// A copy engine pays a fixed time for each copy (2.5 us on an H200: 4 MiB copies reach 53.6 of 55.5 GB/s, 16 MiB ones
// 55.1), while staging memory must stay small enough for the CPU's cache. Shared slots give both: few large slots, and
// parts small enough that all workers are busy on the same slot. The first and the last slot of a job are copied part
// by part: nothing else keeps the copy engine busy then. Reads only. What must stay true: each part is copied exactly
// once, after it was filled, and a slot is handed out again only after its copies.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/job.hpp"
#include "engine/station.hpp"

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

    // The next part to fill; waits for a free slot. False: none is left, or the transfer stopped. A member about to
    // leave opens no slot: it takes parts of open ones only, so that the last to leave leaves nothing behind.
    bool next(Part& part, bool may_open = true);
    // The worker is done with the part; pieces say how much arrived. Starts the copy when it was the slot's last.
    void filled(const Part& part);
    // A worker that must leave early: parts nobody has yet are given up, so that their slots end.
    void give_up();
    // Waits for copies under way. Every worker calls it before it leaves; the slots are then all accounted for.
    void drain();

  private:
    struct Slot {
        enum class Phase : std::uint8_t { free, filling, copying } phase = Phase::free;
        std::vector<Piece> pieces;        // as the parts brought them back
        std::uint32_t parts_open = 0;     // handed out or still to hand out
        bool by_parts = false;            // copied as the parts come
        std::optional<Error> failure{};   // of the copy of a part
    };
    bool open_slot();                      // needs lock; false when the job has no chunk
    void cut_parts(const Chunk& chunk);    // needs lock; fills parts_
    void wait_for_slot(std::unique_lock<std::mutex>& lock);
    void start_copy(std::uint32_t index);  // needs lock
    void copy_part(const Part& part);      // needs lock
    void queue_copies(const std::vector<Piece>& pieces, const std::byte* slot);  // needs lock
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
    std::vector<CopyPiece> copy_pieces_;
    bool started_ = false;                // a slot was opened
    bool sound_ = true;                   // the device has not failed
};

// The pieces of a chunk as copies to the device, neighbours merged; `slot` is where the chunk's memory starts.
void gather_copies(const std::vector<Piece>& pieces, const std::byte* slot, std::vector<CopyPiece>& copies);
// Accounts for a chunk whose bytes are where they should be (or did not come).
void account(TransferState& transfer, PathKind path, const std::vector<Piece>& pieces);

}  // namespace penstock::engine
