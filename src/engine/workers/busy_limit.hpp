// How many workers of a team may be busy at once: as many as the copy engine needs, found while the transfer runs.
//
// Workers that were idle copy slower for some milliseconds, and a busy host slows them by a third. Each worker more
// than needed costs CPU time for every byte, because all of them wait for the same memory. So a transfer starts with
// all workers. At each slot it gives up one while the engine has a long queue, down to half of them: fewer would drain
// the queue before that shows. At each slot it takes one back while the queue is short. The team's mutex guards all.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::engine {

class BusyLimit {
  public:
    BusyLimit(std::uint32_t workers, std::size_t slots)
        : most_(workers), least_((workers + 1) / 2), slots_(slots), limit_(workers) {}

    std::uint32_t value() const noexcept { return limit_; }

    // Workers begin to fill a slot while `queued` others wait for the engine. When the engine is the slower side, all
    // but one wait.
    void opened(std::size_t queued) noexcept {
        if (queued + 2 >= slots_ && limit_ > least_) --limit_;
    }
    // A slot is full; `queued` slots wait for the engine now. True: one more worker may be busy.
    bool filled(std::size_t queued) noexcept { return low(queued) && raise(); }
    // The engine had nothing to do before this part came. True: one more worker may be busy.
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
