// How many workers of a team may be busy at once: as many as the copy engine needs, found while the transfer runs.
//
// Workers that were idle copy slower for some milliseconds, busy hosts slow them by a third, and each one more than
// needed costs CPU time for every byte (they wait for the same memory). So a transfer starts with all, gives one up
// when the engine had a long queue for a few slots, and takes some back when the queue runs dry. The lowering is slow
// because its effect shows only after the queue has drained; the raising is fast because an idle engine is what costs.
// Plain numbers, no lock: the team's mutex guards it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace penstock::engine {

class BusyLimit {
  public:
    BusyLimit(std::uint32_t workers, std::size_t slots) : workers_(workers), slots_(slots), limit_(workers) {}

    std::uint32_t value() const noexcept { return limit_; }

    // A slot is about to be filled while `queued` others wait for the engine: all but one when it is the slower side.
    void opened(std::size_t queued) noexcept {
        if (queued + 2 < slots_ || ++ahead_ < kSlotsToLower) return;
        ahead_ = 0;
        if (limit_ > kMin) --limit_;
    }
    // A slot is full; it and the others that wait for the engine are `queued`. True: more may be busy now.
    bool filled(std::size_t queued) noexcept { return low(queued) && raise(2); }
    // The engine had nothing to do before this part came.
    bool engine_waited() noexcept { return raise(1); }

    // The queue is so short that the engine may have nothing to do.
    static bool low(std::size_t queued) noexcept { return queued <= kLow; }

  private:
    static constexpr std::uint32_t kMin = 4;
    static constexpr std::uint32_t kSlotsToLower = 4;
    static constexpr std::size_t kLow = 1;

    bool raise(std::uint32_t by) noexcept {
        const std::uint32_t before = limit_;
        limit_ = std::min(limit_ + by, workers_);
        return limit_ != before;
    }

    std::uint32_t workers_;
    std::size_t slots_;
    std::uint32_t limit_;
    std::uint32_t ahead_ = 0;  // slots opened with the engine behind since the limit was lowered
};

}  // namespace penstock::engine
