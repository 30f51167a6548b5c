// Small transfers on the calling thread: one pread or pwrite, one copy, one short wait. No queue, no wake-up.
//
// Each caller borrows a lane (a stream and one pinned slot); lanes are made on demand and kept, at most
// LaneOptions::lanes_max of them, and callers beyond that wait for one. Lanes of path `direct` read past the page cache
// what is aligned; a file system that refuses that at transfer time is met through the page cache, recorded as a
// fallback, or an error in a strict transfer.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/pieces.hpp"
#include "engine/transfer_state.hpp"
#include "os/memory/arena.hpp"
#include "os/system.hpp"
#include "penstock/device.hpp"

namespace penstock::engine {

struct LaneOptions {
    PathKind path = PathKind::buffered;  // or direct, for reads
    std::uint64_t slot_bytes = 64 * kKiB;
    std::size_t lanes_max = 16;
};

class InlineLanes {
  public:
    InlineLanes(Device& device, os::System& system, LaneOptions options = {});
    ~InlineLanes();
    InlineLanes(const InlineLanes&) = delete;
    InlineLanes& operator=(const InlineLanes&) = delete;

    // Runs the only step of the transfer to its end. Device errors stop the transfer; nothing is thrown.
    void run(TransferState& transfer);
    // Staging memory that the lanes hold: it grows with them and is kept.
    std::uint64_t pinned_bytes() const;
    // Fills the slots. False: some lane is in use, and nothing is filled.
    bool fill(int byte_value);

  private:
    struct Lane;
    std::unique_ptr<Lane> borrow();
    std::byte* next_slot();
    void give_back(std::unique_ptr<Lane> lane);
    void move_piece(Lane& lane, TransferState& transfer, const PlanPiece& planned);
    void move_storage(TransferState& transfer, Piece& piece);

    Device& device_;
    os::System& system_;
    LaneOptions options_;
    mutable std::mutex mutex_;
    std::condition_variable returned_;
    std::vector<std::unique_ptr<Lane>> idle_;
    std::size_t made_ = 0;
    std::vector<os::Arena> arenas_;  // the slots, as many in each as fit
};

}  // namespace penstock::engine
