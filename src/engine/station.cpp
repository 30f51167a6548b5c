// See station.hpp.
#include "engine/station.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace penstock::engine {
namespace {

constexpr std::uint32_t kPathDepthMin = 32;
constexpr std::uint32_t kPathDepthMax = 256;
constexpr std::uint64_t kSmallChunk = 256 * kKiB;  // chunks up to here may hold many small operations
constexpr std::size_t kIdleStationsMax = 64;
constexpr auto kRoomPatience = std::chrono::milliseconds(20);

}  // namespace

std::uint64_t Station::needed_bytes(const Shape& shape) noexcept {
    return shape.staged ? align_up(align_up(shape.chunk_bytes, 4 * kKiB) * shape.depth, kStagingStep) : 0;
}

class Station::Pinned {
  public:
    Pinned(Device& device, const os::ArenaOptions& options) : device_(device), arena_(options) {
        arena_.touch();
        std::string why;
        if (device_.register_host(arena_.memory().data(), arena_.bytes(), false, why)) return;
        throw Error(ErrorCode::out_of_memory, "register staging memory", why, "lower the budget or the depth");
    }
    ~Pinned() { device_.unregister_host(arena_.memory().data()); }
    Pinned(const Pinned&) = delete;
    Pinned& operator=(const Pinned&) = delete;
    std::span<std::byte> memory() const noexcept { return arena_.memory(); }

  private:
    Device& device_;
    os::Arena arena_;
};

Station::Station(const Shape& shape, const StationParts& parts, std::uint32_t worker)
    : shape_(shape), worker_(worker), device_(parts.device) {
    PathOptions options;
    if (shape.staged) {
        arena_ = std::make_unique<Pinned>(*device_, os::ArenaOptions{needed_bytes(shape), parts.numa_node});
        options.arena = arena_->memory();
    }
    stream_ = device_->make_stream();
    for (std::uint32_t i = 0; i < shape.depth; ++i) events_.push_back(device_->make_event());
    const std::uint32_t operations = shape.chunk_bytes <= kSmallChunk ? kPathDepthMax : shape.depth;
    options.depth = std::clamp(operations, kPathDepthMin, kPathDepthMax);
    options.stream = stream_.get();
    if (shape.part_bytes == 0) path_ = parts.make_path(shape.path, options);
}

std::uint64_t Station::pinned_bytes() const noexcept { return arena_ ? arena_->memory().size() : 0; }

bool Station::serves(const Shape& shape, std::uint32_t worker) const noexcept {
    const bool slots = shape_.staged == shape.staged && shape_.depth == shape.depth &&
                       shape_.chunk_bytes == shape.chunk_bytes && (shape_.part_bytes != 0) == (shape.part_bytes != 0);
    const bool path = shape_.path == shape.path && shape_.direction == shape.direction;
    return worker_ == worker && slots && (path || shape.part_bytes != 0);
}

void Station::shut() noexcept {
    path_.reset();
    try {
        if (stream_) stream_->synchronize();
    } catch (const Error&) {  // the device failed: nothing of it touches the slots any more
    }
}

Station::~Station() = default;  // path, events, stream, then the memory they use

std::byte* Station::slot(std::uint32_t index) const noexcept {
    return arena_ ? arena_->memory().data() + index * align_up(shape_.chunk_bytes, 4 * kKiB) : nullptr;
}

bool StationPool::wanting(std::uint64_t bytes) const noexcept {
    return held_bytes_ + bytes > budget_bytes_ || idle_.size() > kIdleStationsMax;
}

void StationPool::drop_oldest(std::unique_lock<std::mutex>& lock) {
    std::unique_ptr<Station> station = std::move(idle_.front());
    idle_.pop_front();
    const std::uint64_t bytes = station->pinned_bytes();
    lock.unlock();
    station.reset();
    lock.lock();
    held_bytes_ -= bytes;
    room_.notify_all();
}

std::unique_ptr<Station> StationPool::lease(const Shape& shape, std::uint32_t worker,
                                            const std::function<bool()>& give_up) {
    const std::uint64_t bytes = Station::needed_bytes(shape);
    if (bytes > budget_bytes_) {
        throw Error(
            ErrorCode::internal, "lease staging memory",
            std::to_string(bytes) + " bytes for one worker exceed the budget of " + std::to_string(budget_bytes_));
    }
    {
        std::unique_lock lock(mutex_);
        for (auto it = idle_.begin(); it != idle_.end(); ++it) {
            if (!(*it)->serves(shape, worker)) continue;
            std::unique_ptr<Station> station = std::move(*it);
            idle_.erase(it);
            station->adopt(shape);
            return station;
        }
        while (wanting(bytes)) {
            if (!idle_.empty()) {
                drop_oldest(lock);
            } else if (give_up()) {
                return nullptr;
            } else {
                room_.wait_for(lock, kRoomPatience);
            }
        }
        held_bytes_ += bytes;
        peak_bytes_ = std::max(peak_bytes_, held_bytes_);
    }
    try {
        return std::make_unique<Station>(shape, parts_, worker);
    } catch (...) {
        const std::lock_guard lock(mutex_);
        held_bytes_ -= bytes;
        room_.notify_all();
        throw;
    }
}

void StationPool::give_back(std::unique_ptr<Station> station) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(station));
    room_.notify_all();
}

void StationPool::drop(std::unique_ptr<Station> station) {
    const std::uint64_t bytes = station->pinned_bytes();
    station.reset();
    const std::lock_guard lock(mutex_);
    held_bytes_ -= bytes;
    room_.notify_all();
}

void StationPool::drop_idle() {
    Idle dropped;
    const std::lock_guard lock(mutex_);
    for (const auto& station : idle_) held_bytes_ -= station->pinned_bytes();
    dropped.swap(idle_);
}

std::uint64_t StationPool::held_bytes() const {
    const std::lock_guard lock(mutex_);
    return held_bytes_;
}

std::uint64_t StationPool::peak_bytes() const {
    const std::lock_guard lock(mutex_);
    return peak_bytes_;
}

}  // namespace penstock::engine
