// Ends work on the cores that another thread has under way, and what such work needs of its memory.
#pragma once

#include <atomic>
#include <vector>

#include "python/core/core.hpp"
#include "data/decode/pipeline.hpp"

namespace penstock::python {

class Stop {
  public:
    void stop() noexcept { stopped_.store(true, std::memory_order_relaxed); }
    const std::atomic<bool>& flag() const noexcept { return stopped_; }

  private:
    std::atomic<bool> stopped_{false};
};

// Throws Error{invalid_argument} of memory that the host cannot use.
void need_host(const char* operation, const Context& context, const MemoryView& view);

std::vector<data::Filter> filters_of(nb::handle list);

}  // namespace penstock::python
