// How many workers of a team may be busy at once: as many as the copy engine needs, found while the transfer runs.
//
// Workers that were idle copy slower for some milliseconds, busy hosts slow them by a third, and each one more than
// needed costs CPU time for every byte (they wait for the same memory). So a transfer starts with all, gives one up at
// each slot while the engine has a long queue, down to half (fewer would drain the queue before that shows), and takes
// one back at each slot while the queue is short. Plain numbers, no lock: the team's mutex guards it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::engine {

class BusyLimit {
  public:
    BusyLimit(std::uint32_t workers, std::size_t slots)
        : most_(workers), least_((workers + 1) / 2), slots_(slots), limit_(workers) {}

    std::uint32_t value() const noexcept { return limit_; }

    // A slot is about to be filled while `queued` others wait for the engine: all but one when it is the slower side.
    void opened(std::size_t queued) noexcept {
        if (queued + 2 >= slots_ && limit_ > least_) --limit_;
    }
    // A slot is full; it and the others that wait for the engine are `queued`. True: one more may be busy now.
    bool filled(std::size_t queued) noexcept { return low(queued) && raise(); }
    // The engine had nothing to do before this part came. True: one more may be busy now.
    bool engine_waited() noexcept { return raise(); }

    // The queue is so short that the engine may have nothing to do.
    static bool low(std::size_t queued) noexcept { return queued <= 1; }

  private:
    bool raise() noexcept {
        if (limit_ == most_) return false;
        ++limit_;
        return true;
    }

    std::uint32_t most_;
    std::uint32_t least_;
    std::size_t slots_;
    std::uint32_t limit_;
};

}  // namespace penstock::engine
