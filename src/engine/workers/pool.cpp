// See pool.hpp.
#include "engine/workers/pool.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace penstock::engine {
namespace {

constexpr std::size_t kIdlePathsMax = 256;
constexpr auto kRoomPatience = std::chrono::milliseconds(20);

}  // namespace

void EnginePool::count_back() {
    const std::lock_guard lock(mutex_);
    --leased_;
    room_.notify_all();
}

// Counts what `lease` hands out until it comes back.
template <typename Lease>
auto EnginePool::counted(const Lease& lease) -> decltype(lease()) {
    {
        const std::lock_guard lock(mutex_);
        ++leased_;
    }
    try {
        auto leased = lease();
        if (!leased) count_back();
        return leased;
    } catch (...) {
        count_back();
        throw;
    }
}

// Of those that serve the one with the least memory, so that larger ones are there for larger shapes.
template <typename Leased, typename Serves>
std::unique_ptr<Leased> EnginePool::take(Idle<Leased>& idle, const Serves& serves) {
    auto best = idle.end();
    for (auto it = idle.begin(); it != idle.end(); ++it) {
        const bool better = best == idle.end() || (*it)->bytes() < (*best)->bytes();
        if (better && serves(**it)) best = it;
    }
    if (best == idle.end()) return nullptr;
    std::unique_ptr<Leased> taken = std::move(*best);
    idle.erase(best);
    return taken;
}

std::unique_ptr<WorkerPath> EnginePool::lease(const Shape& shape, std::uint32_t worker,
                                              const std::function<bool()>& give_up) {
    return counted([&]() -> std::unique_ptr<WorkerPath> {
        std::unique_ptr<WorkerPath> path;
        const auto take_idle = [&] {
            path = take(paths_, [&](const WorkerPath& one) { return one.serves(shape, worker); });
            return path != nullptr;
        };
        const auto memory = room(StagingSlots::needed_bytes(shape), take_idle, give_up);
        if (path) {
            StagingSlots& slots = *path->slots();
            return recut(std::move(path), slots, shape);
        }
        if (!memory) return nullptr;
        return make_over(*memory, [&] {
            auto slots = std::make_unique<StagingSlots>(*options_.device, *memory);
            slots->cut(shape);
            return std::make_unique<WorkerPath>(options_, shape, worker, std::move(slots));
        });
    });
}

std::unique_ptr<StagingSlots> EnginePool::lease_slots(const Shape& shape, const std::function<bool()>& give_up) {
    return counted([&]() -> std::unique_ptr<StagingSlots> {
        refuse_beyond_budget(StagingSlots::needed_bytes(shape));
        std::unique_ptr<StagingSlots> slots;
        const auto take_idle = [&] {
            slots = take(slots_, [&](const StagingSlots& one) { return one.fit(shape); });
            if (!slots) slots = take(slots_, [&](const StagingSlots& one) { return one.fit_first(shape); });
            return slots != nullptr;
        };
        const auto memory = room(StagingSlots::first_bytes(shape), take_idle, give_up);
        if (slots) {
            StagingSlots& cut = *slots;
            return recut(std::move(slots), cut, shape);
        }
        if (!memory) return nullptr;
        return make_over(*memory, [&] {
            auto made = std::make_unique<StagingSlots>(*options_.device, *memory);
            made->cut(shape);
            return made;
        });
    });
}

std::span<std::byte> EnginePool::more(std::uint64_t bytes) noexcept {
    try {
        return staging_.take(bytes);
    } catch (const std::exception&) {  // the team has slots to go on with
        return {};
    }
}

EnginePool::LentStaging EnginePool::lend(std::uint64_t bytes) noexcept {
    if (bytes == 0 || bytes > budget_bytes_ || waiting_ != 0) return {*this, {}};
    {
        const std::lock_guard lock(mutex_);
        ++leased_;
    }
    const std::uint64_t room = align_up(bytes, kStagingStep);
    std::span<std::byte> memory = more(room);
    while (memory.empty() && drop_one_idle(room)) memory = more(room);
    if (memory.empty()) count_back();
    return {*this, memory};
}

// Nothing goes in vain: what is in use may leave too little, whatever goes.
bool EnginePool::drop_one_idle(std::uint64_t room) noexcept {
    try {
        std::unique_lock lock(mutex_);
        std::uint64_t most = staging_.free_bytes();
        for (const auto& path : paths_) most += path->bytes();
        for (const auto& slots : slots_) most += slots->bytes();
        return most >= room && make_room(lock);
    } catch (const std::exception&) {  // what is idle stays so
        return false;
    }
}

void EnginePool::take_back(std::span<std::byte> lent) noexcept {
    staging_.give(lent);
    count_back();
}

std::unique_ptr<WorkerPath> EnginePool::lease_path(const Shape& shape, std::uint32_t worker) {
    return counted([&] {
        {
            const std::lock_guard lock(mutex_);
            const auto serves = [&](const WorkerPath& one) { return one.serves_member(shape.path, worker); };
            if (std::unique_ptr<WorkerPath> path = take(paths_, serves)) return path;
        }
        return std::make_unique<WorkerPath>(options_, shape, worker, nullptr);
    });
}

void EnginePool::refuse_beyond_budget(std::uint64_t bytes) const {
    if (bytes <= budget_bytes_) return;
    throw Error(ErrorCode::internal, "lease staging memory",
                std::to_string(bytes) + " bytes for one worker exceed the budget of " + std::to_string(budget_bytes_));
}

std::optional<std::span<std::byte>> EnginePool::room(std::uint64_t bytes, const std::function<bool()>& take_idle,
                                                     const std::function<bool()>& give_up) {
    refuse_beyond_budget(bytes);
    std::optional<CountedWait> waits;
    std::unique_lock lock(mutex_);
    while (!take_idle()) {
        lock.unlock();
        const std::span<std::byte> memory = bytes == 0 ? std::span<std::byte>() : staging_.take(bytes);
        if (bytes == 0 || !memory.empty()) return memory;
        lock.lock();
        // What another worker gave back meanwhile may be what serves: it must not be dropped to make room for its like.
        if (take_idle()) return std::nullopt;
        if (make_room(lock)) continue;
        if (!waits) waits.emplace(waiting_);
        if (give_up()) return std::nullopt;
        room_.wait_for(lock, kRoomPatience);
    }
    return std::nullopt;
}

bool EnginePool::make_room(std::unique_lock<std::mutex>& lock) {
    const auto path =
        std::find_if(paths_.begin(), paths_.end(), [](const auto& one) { return one->bytes() != 0; });
    const bool some_path = path != paths_.end();
    if (!some_path && slots_.empty()) return false;
    const bool slots_first =
        !some_path || (!slots_.empty() && slots_.front()->idle_since < (*path)->slots()->idle_since);
    std::unique_ptr<StagingSlots> slots;
    std::unique_ptr<WorkerPath> with_path;
    if (slots_first) {
        slots = std::move(slots_.front());
        slots_.pop_front();
    } else {
        with_path = std::move(*path);
        paths_.erase(path);
    }
    lock.unlock();
    if (slots) unmake(std::move(slots), &Staging::give);
    if (with_path) unmake(std::move(with_path), &Staging::give);
    lock.lock();
    room_.notify_all();
    return true;
}

template <typename Leased>
void EnginePool::unmake(std::unique_ptr<Leased> leased, void (Staging::*end)(std::span<std::byte>)) {
    const auto blocks = leased->blocks();
    const std::vector<std::span<std::byte>> memory(blocks.begin(), blocks.end());
    leased.reset();
    for (const std::span<std::byte> block : memory) (staging_.*end)(block);
    room_.notify_all();
}

// What is made uses the memory. More may have been registered than it needs, so others that wait look again.
template <typename Make>
auto EnginePool::make_over(std::span<std::byte> memory, const Make& make) -> decltype(make()) {
    try {
        auto made = make();
        room_.notify_all();
        return made;
    } catch (...) {
        if (!memory.empty()) staging_.retire(memory);
        room_.notify_all();
        throw;
    }
}

template <typename Leased>
std::unique_ptr<Leased> EnginePool::recut(std::unique_ptr<Leased> leased, StagingSlots& slots, const Shape& shape) {
    try {
        slots.cut(shape);
        return leased;
    } catch (...) {
        unmake(std::move(leased), &Staging::retire);
        throw;
    }
}

void EnginePool::give_back(std::unique_ptr<WorkerPath> path) {
    std::unique_ptr<WorkerPath> surplus;
    {
        const std::lock_guard lock(mutex_);
        if (path->slots() != nullptr) path->slots()->idle_since = ++turn_;
        paths_.push_back(std::move(path));
        --leased_;
        room_.notify_all();
        if (paths_.size() <= kIdlePathsMax) return;
        surplus = std::move(paths_.front());
        paths_.pop_front();
    }
    unmake(std::move(surplus), &Staging::give);
}

void EnginePool::give_back(std::unique_ptr<StagingSlots> slots) {
    const std::lock_guard lock(mutex_);
    slots->idle_since = ++turn_;
    slots_.push_back(std::move(slots));
    --leased_;
    room_.notify_all();
}

void EnginePool::drop(std::unique_ptr<WorkerPath> path) {
    unmake(std::move(path), &Staging::retire);
    count_back();
}

void EnginePool::drop(std::unique_ptr<StagingSlots> slots) {
    unmake(std::move(slots), &Staging::retire);
    count_back();
}

void EnginePool::drop_idle() {
    Idle<WorkerPath> paths;
    Idle<StagingSlots> slots;
    {
        const std::lock_guard lock(mutex_);
        paths.swap(paths_);
        slots.swap(slots_);
    }
    for (auto& one : paths) unmake(std::move(one), &Staging::give);
    for (auto& one : slots) unmake(std::move(one), &Staging::give);
}

bool EnginePool::fill(int byte_value, Deadline deadline) {
    std::unique_lock lock(mutex_);
    if (!room_.wait_for(lock, deadline.left(), [this] { return leased_ == 0; })) return false;
    staging_.fill(byte_value);
    return true;
}

}  // namespace penstock::engine
