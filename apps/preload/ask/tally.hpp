// A count to which mostly one thread adds, from a signal handler too.
//
// An atomic addition waits until all that the processor has still to store is stored. After a call that has copied a
// page to the program these are some 40 ns, more than all else that such a call costs here. So the first thread that
// adds owns the count: it adds by one instruction without a lock, which no signal can cut in two. Other threads add to
// a second number, with a lock.
#pragma once

#include <atomic>
#include <cstdint>

namespace preload {

class Tally {
public:
    // Returns what the count was. Where threads add at the same time each may see the count without the other's part.
    std::uint64_t add(std::uint64_t more) {
        if (is_owner()) return add_alone(more) + others_.load(std::memory_order_relaxed);
        return others_.fetch_add(more, std::memory_order_relaxed) + own_.load(std::memory_order_relaxed);
    }

    std::uint64_t value() const {
        return own_.load(std::memory_order_relaxed) + others_.load(std::memory_order_relaxed);
    }

    // Requires: no thread adds.
    void reset() {
        own_.store(0, std::memory_order_relaxed);
        others_.store(0, std::memory_order_relaxed);
        owner_.store(nullptr, std::memory_order_release);  // Pairs with: is_owner
    }

private:
    bool is_owner() {
        static thread_local char here __attribute__((tls_model("initial-exec")));
        const char* owner = owner_.load(std::memory_order_relaxed);
        if (owner != nullptr) return owner == &here;
        return owner_.compare_exchange_strong(owner, &here, std::memory_order_acquire);
    }

    std::uint64_t add_alone(std::uint64_t more) {
        static_assert(std::atomic<std::uint64_t>::is_always_lock_free && sizeof own_ == sizeof more);
#if defined(__x86_64__)
        asm volatile("xaddq %0, %1" : "+r"(more), "+m"(own_));
        return more;
#else
        return own_.fetch_add(more, std::memory_order_relaxed);
#endif
    }

    std::atomic<const char*> owner_{nullptr};  // a place in the thread's own memory
    std::atomic<std::uint64_t> own_{0}, others_{0};
};

}  // namespace preload
