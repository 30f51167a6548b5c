// Where the threads of a program leave what is to be asked of the kernel, and where askers take it from. No lock: the
// program may be in a signal handler, and never waits for an asker.
//
//  1. A span that is left is taken in pieces by any number of askers, each piece by one.
//  2. A span that does not go on from the last one replaces what is left of that: late advice is worth nothing.
//  3. Close ends first and then waits until no asker is at work for this descriptor. After that the number of the
//     descriptor may belong to another file.
#pragma once

#include <atomic>
#include <cstdint>

#include "preload/ask/sequence.hpp"

namespace preload {

inline constexpr std::int64_t kPieceBytes = 2 * kMiB;

// One direction of one descriptor.
class Asked {
public:
    // Called by one thread at a time.
    void leave(Span span) {
        if (until_.load(std::memory_order_relaxed) != span.offset) next_.store(span.offset, std::memory_order_relaxed);
        until_.store(span.end(), std::memory_order_release);  // Pairs with: take
    }

    // A piece that no other asker has; empty when nothing is left.
    Span take() {
        std::int64_t next = next_.load(std::memory_order_relaxed);
        for (;;) {
            const std::int64_t until = until_.load(std::memory_order_acquire);  // Pairs with: leave
            if (next >= until) return {};
            const std::int64_t bytes = std::min(kPieceBytes, until - next);
            if (next_.compare_exchange_weak(next, next + bytes, std::memory_order_relaxed)) return {next, bytes};
        }
    }

    // Nothing is left any more.
    void clear() {
        next_.store(0, std::memory_order_relaxed);
        until_.store(0, std::memory_order_relaxed);
    }

private:
    std::atomic<std::int64_t> next_{0}, until_{0};
};

// The askers at work for a descriptor. All accesses have one total order: close sees an asker that entered, or that one
// sees that the descriptor has ended.
class AtWork {
public:
    bool enter() {
        workers_.fetch_add(1);
        if (open_.load()) return true;
        leave();
        return false;
    }
    void leave() { workers_.fetch_sub(1); }

    void begin() { open_.store(true); }
    // From now on no asker enters. Whoever calls it then waits while busy().
    void end() { open_.store(false); }
    bool busy() const { return workers_.load() != 0; }
    // In the child of a fork: askers stayed with the parent.
    void forget() {
        open_.store(false);
        workers_.store(0);
    }
    bool is_open() const { return open_.load(std::memory_order_acquire); }

private:
    std::atomic<std::uint32_t> workers_{0};
    std::atomic<bool> open_{false};
};

}  // namespace preload
