// Ready: the queue of completions of a path that finishes operations inside submit(). First in, first out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <span>

#include "path/path.hpp"

namespace penstock::path {

class Ready {
  public:
    void push(const Completion& completion) { waiting_.push_back(completion); }
    std::size_t size() const noexcept { return waiting_.size(); }
    bool empty() const noexcept { return waiting_.empty(); }
    // Moves out as many completions as fit and returns their number.
    std::size_t pop(std::span<Completion> completions) {
        const std::size_t count = std::min(completions.size(), waiting_.size());
        std::copy_n(waiting_.begin(), count, completions.begin());
        waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(count));
        return count;
    }

  private:
    std::deque<Completion> waiting_;
};

}  // namespace penstock::path
