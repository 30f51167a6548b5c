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
constexpr std::size_t kIdleStationsMax = 256;
constexpr auto kRoomPatience = std::chrono::milliseconds(20);

}  // namespace

std::uint64_t Station::needed_bytes(const Shape& shape) noexcept {
    return shape.staged ? align_up(align_up(shape.chunk_bytes, 4 * kKiB) * shape.depth, kStagingStep) : 0;
}

Station::Station(const Shape& shape, const StationParts& parts, std::uint32_t worker, std::span<std::byte> memory)
    : shape_(shape), worker_(worker), memory_(memory) {
    stream_ = parts.device->make_stream();
    for (std::uint32_t i = 0; i < shape.depth; ++i) events_.push_back(parts.device->make_event());
    const std::uint32_t operations = shape.chunk_bytes <= kSmallChunk ? kPathDepthMax : shape.depth;
    PathOptions options;
    options.arena = memory_;
    options.depth = std::clamp(operations, kPathDepthMin, kPathDepthMax);
    options.stream = stream_.get();
    if (shape.part_bytes == 0) path_ = parts.make_path(shape.path, options);
}

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

Station::~Station() = default;

std::byte* Station::slot(std::uint32_t index) const noexcept {
    return memory_.empty() ? nullptr : memory_.data() + index * align_up(shape_.chunk_bytes, 4 * kKiB);
}

std::unique_ptr<Station> StationPool::take_idle(const Shape& shape, std::uint32_t worker) {
    const auto found =
        std::find_if(idle_.begin(), idle_.end(), [&](const auto& station) { return station->serves(shape, worker); });
    if (found == idle_.end()) return nullptr;
    std::unique_ptr<Station> station = std::move(*found);
    idle_.erase(found);
    station->adopt(shape);
    return station;
}

void StationPool::drop_oldest(std::unique_lock<std::mutex>& lock) {
    std::unique_ptr<Station> station = std::move(idle_.front());
    idle_.pop_front();
    const std::span<std::byte> memory = station->memory();
    lock.unlock();
    station.reset();
    if (!memory.empty()) staging_.give(memory);
    lock.lock();
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
    std::unique_lock lock(mutex_);
    while (true) {
        if (std::unique_ptr<Station> station = take_idle(shape, worker)) return station;
        if (idle_.size() > kIdleStationsMax) drop_oldest(lock);
        lock.unlock();
        const std::span<std::byte> memory = bytes == 0 ? std::span<std::byte>() : staging_.take(bytes);
        if (bytes == 0 || !memory.empty()) return make(shape, worker, memory);
        lock.lock();
        // What another worker gave back meanwhile may be what serves: it must not be dropped to make room for its like.
        if (std::unique_ptr<Station> station = take_idle(shape, worker)) return station;
        if (!idle_.empty()) {
            drop_oldest(lock);
        } else if (give_up()) {
            return nullptr;
        } else {
            room_.wait_for(lock, kRoomPatience);
        }
    }
}

std::unique_ptr<Station> StationPool::make(const Shape& shape, std::uint32_t worker, std::span<std::byte> memory) {
    try {
        auto station = std::make_unique<Station>(shape, parts_, worker, memory);
        room_.notify_all();  // more may have been registered than this one needs
        return station;
    } catch (...) {
        if (!memory.empty()) staging_.retire(memory);
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
    const std::span<std::byte> memory = station->memory();
    station.reset();
    if (!memory.empty()) staging_.retire(memory);
    room_.notify_all();
}

void StationPool::drop_idle() {
    Idle dropped;
    {
        const std::lock_guard lock(mutex_);
        dropped.swap(idle_);
    }
    for (std::unique_ptr<Station>& station : dropped) {
        const std::span<std::byte> memory = station->memory();
        station.reset();
        if (!memory.empty()) staging_.give(memory);
    }
}

}  // namespace penstock::engine
