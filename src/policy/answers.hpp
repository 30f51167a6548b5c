// Answers: a few of the latest predictions, so that a program that asks for the same kind of request again and again
// does not pay for interpolation each time.
//
// Never waits: an entry that another thread has in hand is passed over, by whoever looks and by whoever keeps. `taken`
// pairs an acquiring exchange with a releasing store; entries are touched only in between.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "policy/cost_types.hpp"

namespace penstock::policy {

class Answers {
  public:
    bool look(const CostQuestion& question, PathCosts& answer) noexcept;
    void keep(const CostQuestion& question, const PathCosts& answer) noexcept;

  private:
    struct Entry {
        std::atomic<bool> taken{false};
        CostQuestion question;  // of 0 bytes: nothing yet
        PathCosts answer;
    };
    Entry& entry_of(const CostQuestion& question) noexcept;

    std::array<Entry, 32> entries_;
};

}  // namespace penstock::policy
