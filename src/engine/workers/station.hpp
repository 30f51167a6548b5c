// A station: everything one worker needs to move chunks by one path. Staging slots, a path, a stream, events.
//
// Stations are costly to make (pinning, ring set-up) and may cost more to unmake (io_destroy waits 30 to 40 ms for the
// kernel's grace period), so the pool keeps idle ones, and one serves every shape that it has the room for: what a
// request makes of chunks, depth and direction needs no other. The sum of their staging memory never exceeds the
// budget, idle ones are dropped to make room, and who finds no room waits. A station returns to the worker that made
// it: io_uring rings are bound to their thread. Its memory is the pool's, which keeps it registered.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engine/workers/staging.hpp"
#include "penstock/device.hpp"
#include "penstock/path.hpp"
#include "penstock/plan.hpp"

namespace penstock::engine {

// How stations are made; the parts that come from the context.
struct StationParts {
    Device* device = nullptr;
    int numa_node = -1;
    std::function<std::unique_ptr<Path>(PathKind, PathOptions)> make_path;
};

class Station {
  public:
    // `memory`: needed_bytes(shape) of staging memory; it must stay until the station is gone.
    Station(const Shape& shape, const StationParts& parts, std::uint32_t worker, std::span<std::byte> memory);
    ~Station();
    Station(const Station&) = delete;
    Station& operator=(const Station&) = delete;

    const Shape& shape() const noexcept { return shape_; }
    std::uint32_t worker() const noexcept { return worker_; }
    std::span<std::byte> memory() const noexcept { return memory_; }
    std::byte* slot(std::uint32_t index) const noexcept;
    Event& event(std::uint32_t index) const noexcept { return *events_[index]; }
    Stream& stream() const noexcept { return *stream_; }
    Path& path() const noexcept { return *path_; }
    // Ends everything in flight: the path goes, the stream drains. The station must not be used afterwards.
    void shut() noexcept;
    // Whether it can be used for this shape by this worker: its path, deep enough, and room for the slots, but not so
    // much more that a small transfer would keep it from a large one. Shared slots have no path of their own.
    bool serves(const Shape& shape, std::uint32_t worker) const noexcept;
    void adopt(const Shape& shape);  // one that it serves; throws what making an event throws
    // The pinned bytes a station of this shape holds.
    static std::uint64_t needed_bytes(const Shape& shape) noexcept;

  private:
    Device& device_;
    Shape shape_;
    std::uint32_t worker_;
    std::span<std::byte> memory_;
    std::uint32_t path_depth_;  // that the path was made for
    std::unique_ptr<Stream> stream_;
    std::vector<std::unique_ptr<Event>> events_;
    std::unique_ptr<Path> path_;  // last: goes first, so that no operation outlives the slots
};

class StationPool {
  public:
    StationPool(StationParts parts, std::uint64_t budget_bytes)
        : parts_(std::move(parts)),
          budget_bytes_(budget_bytes),
          staging_(*parts_.device, parts_.numa_node, budget_bytes) {}

    // An idle station of this worker that serves the shape, or a new one; waits for room in the budget. nullptr when
    // `give_up` answers true. Throws what making a station throws.
    std::unique_ptr<Station> lease(const Shape& shape, std::uint32_t worker, const std::function<bool()>& give_up);
    void give_back(std::unique_ptr<Station> station);
    void drop(std::unique_ptr<Station> station);  // neither it nor its memory is to be used again
    void drop_idle();
    // Fills all staging memory once every station is back. False: at the deadline one is not, and nothing is filled.
    bool fill(int byte_value, Deadline deadline);

    std::uint64_t held_bytes() const { return staging_.registered_bytes(); }
    std::uint64_t peak_bytes() const { return staging_.peak_bytes(); }

  private:
    using Idle = std::list<std::unique_ptr<Station>>;
    Idle::iterator find_idle(const Shape& shape, std::uint32_t worker);  // needs mutex_
    std::unique_ptr<Station> take(Idle::iterator idle);                  // needs mutex_
    std::unique_ptr<Station> find_or_make(const Shape& shape, std::uint32_t worker,
                                          const std::function<bool()>& give_up);
    void count_back();
    void discard(std::unique_ptr<Station> station);
    std::unique_ptr<Station> adopted(std::unique_ptr<Station> station, const Shape& shape);
    void unmake(Idle::iterator idle, std::unique_lock<std::mutex>& lock);  // without the mutex
    // Unmakes the least recently used idle one of those that hold memory; false when none does.
    bool make_room(std::unique_lock<std::mutex>& lock);
    std::unique_ptr<Station> make(const Shape& shape, std::uint32_t worker, std::span<std::byte> memory);
    StationParts parts_;
    std::uint64_t budget_bytes_;
    mutable std::mutex mutex_;
    std::condition_variable room_;
    std::size_t leased_ = 0;  // stations that are out or on their way
    Staging staging_;
    Idle idle_;  // least recently used first; goes before the memory it uses
};

}  // namespace penstock::engine
