// The pool of what workers lease: paths, with slots or without, and the slots of teams.
//
// They are costly to make (pinning, ring set-up) and may cost more to unmake (io_destroy waits 30 to 40 ms for the
// kernel's grace period), so the pool keeps idle ones. One serves every shape that it has the room for. The staging
// memory of all slots never exceeds the budget: the pool drops idle slots to make room, and a worker that finds no room
// waits. The memory itself stays registered when its slots go (staging.hpp).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "engine/slots/staging_slots.hpp"
#include "engine/slots/staging.hpp"
#include "engine/workers/worker_path.hpp"

namespace penstock::engine {

class EnginePool {
  public:
    // Staging memory that is no slot's, for a caller who fills it and copies from it by himself. It goes back when this
    // goes. Requires: the pool lives.
    class LentStaging {
      public:
        LentStaging(EnginePool& pool, std::span<std::byte> memory) noexcept : pool_(pool), memory_(memory) {}
        ~LentStaging() {
            if (!memory_.empty()) pool_.take_back(memory_);
        }
        LentStaging(const LentStaging&) = delete;
        LentStaging& operator=(const LentStaging&) = delete;
        // Empty: the budget has no room now, or the system gives none.
        std::span<std::byte> memory() const noexcept { return memory_; }

      private:
        EnginePool& pool_;
        std::span<std::byte> memory_;
    };

    EnginePool(EngineOptions options, std::uint64_t budget_bytes)
        : options_(std::move(options)),
          budget_bytes_(budget_bytes),
          staging_(*options_.device, options_.numa_node, budget_bytes) {}

    // For a worker that works alone: a path and slots of its own. Waits for room in the budget; nullptr once `give_up`
    // answers true. Throws what making them throws.
    std::unique_ptr<WorkerPath> lease(const Shape& shape, std::uint32_t worker, const std::function<bool()>& give_up);
    // For a member of a team: a path without slots. Does not wait.
    std::unique_ptr<WorkerPath> lease_path(const Shape& shape, std::uint32_t worker);
    // For a team: slots without a path, as many as there are idle, or the first of them. Waits as lease().
    std::unique_ptr<StagingSlots> lease_slots(const Shape& shape, const std::function<bool()>& give_up);
    // Memory for more slots of a team, or none: the budget has no room now, or the system gives none. Does not wait.
    std::span<std::byte> more(std::uint64_t bytes) noexcept;
    // At least so many bytes, or none, as of 0. Idle slots make room for it, if that is enough; it does not wait for
    // others, and takes nothing while a worker waits for room: who borrows it can do without.
    LentStaging lend(std::uint64_t bytes) noexcept;

    void give_back(std::unique_ptr<WorkerPath> path);
    void give_back(std::unique_ptr<StagingSlots> slots);
    // Something of it may still write to its memory: neither it nor its memory is used again.
    void drop(std::unique_ptr<WorkerPath> path);
    void drop(std::unique_ptr<StagingSlots> slots);
    void drop_idle();
    // Fills all staging memory once every lease has ended. False: at the deadline one has not, and nothing is filled.
    bool fill(int byte_value, Deadline deadline);

    std::uint64_t held_bytes() const { return staging_.registered_bytes(); }
    std::uint64_t peak_bytes() const { return staging_.peak_bytes(); }

  private:
    // A worker that waits for room, until it has some or gives up.
    class CountedWait {
      public:
        explicit CountedWait(std::atomic<unsigned>& waiting) : waiting_(waiting) { ++waiting_; }
        ~CountedWait() { --waiting_; }
        CountedWait(const CountedWait&) = delete;
        CountedWait& operator=(const CountedWait&) = delete;

      private:
        std::atomic<unsigned>& waiting_;
    };
    template <typename Leased>
    using Idle = std::list<std::unique_ptr<Leased>>;
    template <typename Leased, typename Serves>
    static std::unique_ptr<Leased> take(Idle<Leased>& idle, const Serves& serves);  // Requires: mutex_
    void refuse_beyond_budget(std::uint64_t bytes) const;
    void take_back(std::span<std::byte> lent) noexcept;
    template <typename Lease>
    auto counted(const Lease& lease) -> decltype(lease());
    // Memory for new slots. Nothing once `take_idle` has found some to use again, or `give_up` answers true; both are
    // called with mutex_.
    std::optional<std::span<std::byte>> room(std::uint64_t bytes, const std::function<bool()>& take_idle,
                                             const std::function<bool()>& give_up);
    template <typename Make>
    auto make_over(std::span<std::byte> memory, const Make& make) -> decltype(make());
    template <typename Leased>
    std::unique_ptr<Leased> recut(std::unique_ptr<Leased> leased, StagingSlots& slots, const Shape& shape);
    // Unmakes the least recently used of the idle ones that hold memory. False: there is none. Requires: mutex_, which
    // it lets go meanwhile.
    bool make_room(std::unique_lock<std::mutex>& lock);
    bool drop_one_idle(std::uint64_t room) noexcept;  // as make_room, where so many bytes can become free
    template <typename Leased>
    void unmake(std::unique_ptr<Leased> leased, void (Staging::*end)(std::span<std::byte>));
    void count_back();

    EngineOptions options_;
    std::uint64_t budget_bytes_;
    mutable std::mutex mutex_;
    std::condition_variable room_;
    std::atomic<unsigned> waiting_{0};  // workers, for room
    std::size_t leased_ = 0;   // out or on their way
    std::uint64_t turn_ = 0;   // rises whenever a lease ends
    Staging staging_;
    // Idle, the least recently used first. They go before the memory that they use.
    Idle<WorkerPath> paths_;
    Idle<StagingSlots> slots_;  // without a path
};

}  // namespace penstock::engine
