// Where a session gets chunks for storage, and where they go afterwards: slots of the worker's own, or a team's.
//
// A session calls only these functions, so it need not know whether it works alone. The defaults are for a member of a
// team, whose other members see to the copies.
#pragma once

#include <cstdint>

#include "engine/slots/staging_slots.hpp"

namespace penstock::engine {

class SlotSource {
  public:
    virtual ~SlotSource() = default;

    // A session joins before its first chunk and leaves after its last.
    virtual void join() {}
    virtual void leave() = 0;
    virtual const Shape& shape() const noexcept = 0;  // of all jobs that it serves
    // How many chunks one session has in storage at once.
    virtual std::uint32_t chunks_at_once() const noexcept = 0;

    // The next chunk to move from or to storage, its pieces in their places. False: there is none now. Without
    // `may_open` no slot is opened: the session is about to end, and finishes what has begun.
    virtual bool next(Chunk& chunk, bool may_open) = 0;
    // Storage is done with the chunk; its pieces say how much moved.
    virtual void stored(Chunk& chunk) = 0;
    // The path has lent memory with bytes of the piece. False: the device refused to copy from it.
    virtual bool copy_lent(const Chunk&, const Piece&, const Completion&) { return false; }

    // Looks which copies have ended. True: some have.
    virtual bool collect() { return false; }
    // Copies that this session waits for are under way.
    virtual bool copying() const noexcept { return false; }
    virtual void wait_for_copy(Deadline) {}
    // Every chunk that this session began has ended.
    virtual bool idle() const noexcept { return true; }

    // The transfer of the chunk has stopped and the system does not end its reads. True: the chunk ends without bytes,
    // and its slot stays taken until landed().
    virtual bool give_up(Chunk&) { return false; }
    virtual void landed(const Chunk&) noexcept {}
    // The session cannot go on: its transfers stop with this error.
    virtual void stop(const ErrorInfo& error) = 0;
    // After stop() and the end of the path: ends what only this session would have moved, without bytes.
    virtual void abandon() = 0;
    // False: the device failed, and the session's path must go with its slots.
    virtual bool sound() const noexcept { return true; }
};

}  // namespace penstock::engine
