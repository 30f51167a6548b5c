// The order in which a source will be asked for batches: the rest of this sweep, then the sweep announced to follow.
//
// Both sources that read ahead use it. It says what comes next and how soon a batch is needed; which memory a batch
// gets is up to the source.
#pragma once

#include <cstdint>
#include <vector>

#include "hmatrix/multiply/source/source.hpp"

namespace penstock::hmatrix {

class SweepOrder {
  public:
    // Requires: the spans of `sweep` stay valid until the next begin().
    void begin(const Sweep& sweep);
    // The source has handed out a batch.
    void advance() noexcept { ++position_; }

    int tiers() const noexcept { return sweep_.tiers; }
    // The batch that will be taken `steps` takes from now; -1 if the sweep does not say.
    std::int64_t upcoming(std::int64_t steps) const noexcept;
    // Takes until `batch` is next needed; -1 if the sweep does not say.
    std::int64_t steps_until(std::int64_t batch) const noexcept;

  private:
    Sweep sweep_;
    std::int64_t position_ = 0;             // in sweep_.order: the next batch to be taken
    std::vector<std::int64_t> place_now_;   // for each batch its position in sweep_.order; -1: not in it
    std::vector<std::int64_t> place_next_;  // the same for sweep_.next
};

}  // namespace penstock::hmatrix
