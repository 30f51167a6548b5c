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

}  // namespace

std::uint64_t Station::needed_bytes(const Shape& shape) noexcept {
    return shape.staged ? align_up(align_up(shape.chunk_bytes, 4 * kKiB) * shape.depth, kStagingStep) : 0;
}

Station::Station(const Shape& shape, const StationParts& parts, std::uint32_t worker)
    : shape_(shape), worker_(worker), device_(parts.device), stream_(parts.device->make_stream()) {
    PathOptions options;
    if (shape.staged) {
        arena_ = std::make_unique<os::Arena>(os::ArenaOptions{needed_bytes(shape), parts.numa_node});
        arena_->touch();
        std::string why;
        if (!device_->register_host(arena_->memory().data(), arena_->bytes(), false, why)) {
            arena_.reset();
            throw Error(ErrorCode::out_of_memory, "register staging memory", why, "lower the budget or the depth");
        }
        options.arena = arena_->memory();
    }
    for (std::uint32_t i = 0; i < shape.depth; ++i) events_.push_back(device_->make_event());
    const std::uint32_t operations = shape.chunk_bytes <= kSmallChunk ? kPathDepthMax : shape.depth;
    options.depth = std::clamp(operations, kPathDepthMin, kPathDepthMax);
    options.stream = stream_.get();
    path_ = parts.make_path(shape.path, options);
}

void Station::shut() noexcept {
    path_.reset();
    try {
        if (stream_) stream_->synchronize();
    } catch (const Error&) {  // the device failed: nothing of it touches the slots any more
    }
}

Station::~Station() {
    path_.reset();
    stream_.reset();
    if (arena_) device_->unregister_host(arena_->memory().data());
}

std::byte* Station::slot(std::uint32_t index) const noexcept {
    return arena_ ? arena_->memory().data() + index * align_up(shape_.chunk_bytes, 4 * kKiB) : nullptr;
}

StationPool::Idle StationPool::make_room(std::uint64_t bytes) {
    Idle dropped;
    while (!idle_.empty() && (held_bytes_ + bytes > budget_bytes_ || idle_.size() > kIdleStationsMax)) {
        held_bytes_ -= idle_.front()->pinned_bytes();
        dropped.splice(dropped.end(), idle_, idle_.begin());
    }
    return dropped;
}

std::unique_ptr<Station> StationPool::lease(const Shape& shape, std::uint32_t worker,
                                            const std::function<bool()>& give_up) {
    const std::uint64_t bytes = Station::needed_bytes(shape);
    if (bytes > budget_bytes_) {
        throw Error(
            ErrorCode::internal, "lease staging memory",
            std::to_string(bytes) + " bytes for one worker exceed the budget of " + std::to_string(budget_bytes_));
    }
    Idle dropped;
    {
        std::unique_lock lock(mutex_);
        for (auto it = idle_.begin(); it != idle_.end(); ++it) {
            if ((*it)->worker() != worker || !((*it)->shape() == shape)) continue;
            std::unique_ptr<Station> station = std::move(*it);
            idle_.erase(it);
            return station;
        }
        while (true) {
            dropped.splice(dropped.end(), make_room(bytes));
            if (held_bytes_ + bytes <= budget_bytes_) break;
            if (give_up()) return nullptr;
            room_.wait_for(lock, std::chrono::milliseconds(20));
        }
        held_bytes_ += bytes;
        peak_bytes_ = std::max(peak_bytes_, held_bytes_);
    }
    dropped.clear();  // before new memory is pinned: the budget holds at every moment
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
    Idle dropped;
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
