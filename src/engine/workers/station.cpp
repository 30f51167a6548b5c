// See station.hpp.
#include "engine/workers/station.hpp"

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
// A station may have as many times the memory that a shape needs; up to kSpareBytes it is of no account.
constexpr std::uint64_t kSpareTimes = 4;
constexpr std::uint64_t kSpareBytes = 16 * kMiB;

// Two depths only, so that shapes differ little in what they ask of a path.
std::uint32_t path_depth(const Shape& shape) noexcept {
    return shape.chunk_bytes <= kSmallChunk || shape.depth > kPathDepthMin ? kPathDepthMax : kPathDepthMin;
}

}  // namespace

std::uint64_t Station::needed_bytes(const Shape& shape) noexcept {
    return shape.staged ? align_up(align_up(shape.chunk_bytes, 4 * kKiB) * shape.depth, kStagingStep) : 0;
}

Station::Station(const Shape& shape, const StationParts& parts, std::uint32_t worker, std::span<std::byte> memory)
    : device_(*parts.device), worker_(worker), memory_(memory), path_depth_(path_depth(shape)) {
    stream_ = device_.make_stream();
    adopt(shape);
    PathOptions options;
    options.arena = memory_;
    options.depth = path_depth_;
    options.stream = stream_.get();
    if (shape.part_bytes == 0) path_ = parts.make_path(shape.path, options);
}

bool Station::serves(const Shape& shape, std::uint32_t worker) const noexcept {
    const std::uint64_t needed = needed_bytes(shape);
    const bool room = memory_.size() >= needed && memory_.size() <= std::max(kSpareTimes * needed, kSpareBytes);
    if (worker_ != worker || !room) return false;
    if (shape.part_bytes != 0 || path_ == nullptr) return shape.part_bytes != 0 && path_ == nullptr;
    return shape_.path == shape.path && (!path_->capabilities().asynchronous || path_depth_ >= path_depth(shape));
}

void Station::adopt(const Shape& shape) {
    while (events_.size() < shape.depth) events_.push_back(device_.make_event());
    shape_ = shape;
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

// The one with the least memory, so that larger ones are there for larger shapes.
StationPool::Idle::iterator StationPool::find_idle(const Shape& shape, std::uint32_t worker) {
    auto best = idle_.end();
    for (auto it = idle_.begin(); it != idle_.end(); ++it) {
        const bool better = best == idle_.end() || (*it)->memory().size() < (*best)->memory().size();
        if (better && (*it)->serves(shape, worker)) best = it;
    }
    return best;
}

std::unique_ptr<Station> StationPool::take(Idle::iterator idle) {
    std::unique_ptr<Station> station = std::move(*idle);
    idle_.erase(idle);
    return station;
}

std::unique_ptr<Station> StationPool::adopted(std::unique_ptr<Station> station, const Shape& shape) {
    try {
        station->adopt(shape);
        return station;
    } catch (...) {
        discard(std::move(station));
        throw;
    }
}

void StationPool::unmake(Idle::iterator idle, std::unique_lock<std::mutex>& lock) {
    std::unique_ptr<Station> station = take(idle);
    const std::span<std::byte> memory = station->memory();
    lock.unlock();
    station.reset();
    if (!memory.empty()) staging_.give(memory);
    lock.lock();
    room_.notify_all();
}

bool StationPool::make_room(std::unique_lock<std::mutex>& lock) {
    const auto oldest = std::find_if(idle_.begin(), idle_.end(), [](const auto& s) { return !s->memory().empty(); });
    if (oldest == idle_.end()) return false;
    unmake(oldest, lock);
    return true;
}

void StationPool::count_back() {
    const std::lock_guard lock(mutex_);
    --leased_;
    room_.notify_all();
}

std::unique_ptr<Station> StationPool::lease(const Shape& shape, std::uint32_t worker,
                                            const std::function<bool()>& give_up) {
    {
        const std::lock_guard lock(mutex_);
        ++leased_;
    }
    try {
        std::unique_ptr<Station> station = find_or_make(shape, worker, give_up);
        if (!station) count_back();
        return station;
    } catch (...) {
        count_back();
        throw;
    }
}

std::unique_ptr<Station> StationPool::find_or_make(const Shape& shape, std::uint32_t worker,
                                                   const std::function<bool()>& give_up) {
    const std::uint64_t bytes = Station::needed_bytes(shape);
    if (bytes > budget_bytes_) {
        throw Error(
            ErrorCode::internal, "lease staging memory",
            std::to_string(bytes) + " bytes for one worker exceed the budget of " + std::to_string(budget_bytes_));
    }
    std::unique_lock lock(mutex_);
    while (true) {
        if (const auto idle = find_idle(shape, worker); idle != idle_.end()) {
            std::unique_ptr<Station> station = take(idle);
            lock.unlock();
            return adopted(std::move(station), shape);
        }
        if (idle_.size() > kIdleStationsMax) unmake(idle_.begin(), lock);
        lock.unlock();
        const std::span<std::byte> memory = bytes == 0 ? std::span<std::byte>() : staging_.take(bytes);
        if (bytes == 0 || !memory.empty()) return make(shape, worker, memory);
        lock.lock();
        // What another worker gave back meanwhile may be what serves: it must not be dropped to make room for its like.
        if (find_idle(shape, worker) != idle_.end() || make_room(lock)) continue;
        if (give_up()) return nullptr;
        room_.wait_for(lock, kRoomPatience);
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
    --leased_;
    room_.notify_all();
}

void StationPool::drop(std::unique_ptr<Station> station) {
    discard(std::move(station));
    count_back();
}

void StationPool::discard(std::unique_ptr<Station> station) {
    const std::span<std::byte> memory = station->memory();
    station.reset();
    if (!memory.empty()) staging_.retire(memory);
    room_.notify_all();
}

bool StationPool::fill(int byte_value, Deadline deadline) {
    std::unique_lock lock(mutex_);
    if (!room_.wait_for(lock, deadline.left(), [this] { return leased_ == 0; })) return false;
    staging_.fill(byte_value);
    return true;
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
