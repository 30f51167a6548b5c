// Answers: caches recent predictions, so that a program that repeats one kind of request does not pay for interpolation
// each time.
//
// Never waits: look() and keep() skip an entry that another thread is using. A thread reads and writes an entry only
// between an acquiring exchange of `taken` and a releasing store. Pairs with: that store pairs with the next exchange.
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
        CostQuestion question;  // bytes == 0: the entry is empty
        PathCosts answer;
    };
    Entry& entry_of(const CostQuestion& question) noexcept;

    std::array<Entry, 32> entries_;
};

}  // namespace penstock::policy
