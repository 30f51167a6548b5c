// A path for one worker: io_uring rings are bound to the thread that made them, so a path returns to its worker.
//
// A worker that works alone has slots beside it, and the path knows their memory and their stream: a ring registers the
// memory, gds-stream queues reads in the stream. A member of a team has none: it fills the slots of its team.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "engine/engine_options.hpp"
#include "engine/slots/staging_slots.hpp"

namespace penstock::engine {

class WorkerPath {
  public:
    // A path of the shape's kind. `slots` may be nullptr. Throws what making the path throws.
    WorkerPath(const EngineOptions& options, const Shape& shape, std::uint32_t worker,
               std::unique_ptr<StagingSlots> slots);

    Path& path() const noexcept { return *path_; }
    StagingSlots* slots() const noexcept { return slots_.get(); }
    std::span<const std::span<std::byte>> blocks() const noexcept {
        return slots_ ? slots_->blocks() : std::span<const std::span<std::byte>>();
    }
    std::uint64_t bytes() const noexcept { return slots_ ? slots_->bytes() : 0; }
    // Ends everything in flight: the path goes, the stream drains. Neither is to be used afterwards.
    void shut() noexcept;
    // Whether this worker can use it for the shape: path, depth, and room for the slots.
    bool serves(const Shape& shape, std::uint32_t worker) const noexcept;
    // Whether this worker can use it as a member of a team that reads by this path.
    bool serves_member(PathKind kind, std::uint32_t worker) const noexcept;

  private:
    bool is_of(PathKind kind, std::uint32_t worker) const noexcept { return kind_ == kind && worker_ == worker; }

    PathKind kind_;
    std::uint32_t depth_;  // operations that the path was made for
    std::uint32_t worker_;
    std::unique_ptr<StagingSlots> slots_;
    std::unique_ptr<Path> path_;  // last: goes first, so that no operation outlives the slots
};

}  // namespace penstock::engine
