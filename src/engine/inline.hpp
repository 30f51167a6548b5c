// Small transfers on the calling thread: one pread or pwrite, one copy, one short wait. No queue, no wake-up.
//
// Each caller borrows a lane (a stream and one pinned slot); lanes are made on demand and kept, at most kLanesMax of
// them, and callers beyond that wait for one.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/transfer_state.hpp"
#include "os/arena.hpp"
#include "os/system.hpp"
#include "penstock/device.hpp"

namespace penstock::engine {

class InlineLanes {
  public:
    static constexpr std::uint64_t kSlotBytes = 64 * kKiB;
    static constexpr std::size_t kLanesMax = 16;

    InlineLanes(Device& device, os::System& system);
    ~InlineLanes();
    InlineLanes(const InlineLanes&) = delete;
    InlineLanes& operator=(const InlineLanes&) = delete;

    // Runs the only step of the transfer to its end. Device errors stop the transfer; nothing is thrown.
    void run(TransferState& transfer);
    // Staging memory that the lanes hold, for all of them, from the first use on.
    std::uint64_t pinned_bytes() const;

  private:
    struct Lane;
    std::unique_ptr<Lane> borrow();
    void give_back(std::unique_ptr<Lane> lane);
    void move_piece(Lane& lane, TransferState& transfer, const PlanPiece& piece);
    std::uint64_t storage(TransferState& transfer, std::byte* memory, const struct InlineSpan& span);

    Device& device_;
    os::System& system_;
    mutable std::mutex mutex_;
    std::condition_variable returned_;
    std::vector<std::unique_ptr<Lane>> idle_;
    std::size_t made_ = 0;
    os::Arena arena_;  // slots of all lanes; made with the first
};

}  // namespace penstock::engine
