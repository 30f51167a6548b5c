// Many items of work on all cores, for the time of one call.
//
// The calling thread works too, and threads help it that a context has for all of its calls, or that end with this one.
// Ensures: after the return no item is worked on any more; between two items a thread looks whether the work was
// stopped.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "os/threads/crew.hpp"
#include "penstock/types.hpp"

namespace penstock::data {

struct CoreOptions {
    unsigned threads = 0;                        // the calling one included; 0: one for each CPU of this process
    Deadline deadline = Deadline::never();
    const std::atomic<bool>* stopped = nullptr;  // set by another thread to end the work
    os::Crew* crew = nullptr;        // null: threads are begun for this call
};

struct CoreResult {
    std::size_t done = 0;  // items; all, unless the work was stopped or one has a fault
    std::optional<std::pair<std::size_t, std::string>> fault{};  // the first item that was found to have one, and which
};

// What one thread works with. Items come in any order, each to one thread.
class ItemWorker {
  public:
    virtual ~ItemWorker() = default;
    virtual std::string take(std::size_t item) = 0;  // returns its fault; empty: it is done
};

struct Items {
    std::size_t count = 0;
    std::uint64_t bytes = 0;            // of each
    std::uint64_t bytes_of_thread = 1;  // that are worth one more thread
    const std::atomic<bool>* ended = nullptr;  // set by a worker, which ends the work as CoreOptions::stopped does
};

// `make` is called in each thread. Throws what it, or a worker, throws.
CoreResult on_cores(const Items& items, const std::function<std::unique_ptr<ItemWorker>()>& make,
                    const CoreOptions& options);

}  // namespace penstock::data
