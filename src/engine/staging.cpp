// See staging.hpp. Slabs are made without the mutex, and count while they are made; they are unmade with it.
#include "engine/staging.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "penstock/error.hpp"
#include "penstock/plan.hpp"

namespace penstock::engine {
namespace {

constexpr std::uint64_t kSlabMin = 32 * kMiB;  // once as much is registered: room for several small stations

}  // namespace

Staging::Slab::Slab(Device& device, const os::ArenaOptions& options) : device_(device), arena_(options) {
    arena_.touch();
    free_.emplace(0, arena_.bytes());
    free_bytes_ = arena_.bytes();
    std::string why;
    if (device_.register_host(arena_.memory().data(), arena_.bytes(), false, why)) return;
    throw Error(ErrorCode::out_of_memory, "register staging memory", why, "lower the budget or the depth");
}

Staging::Slab::~Slab() { device_.unregister_host(arena_.memory().data()); }

bool Staging::Slab::holds(const std::byte* memory) const noexcept {
    const std::byte* start = arena_.memory().data();
    return memory >= start && memory < start + arena_.bytes();
}

std::byte* Staging::Slab::take(std::uint64_t bytes) {
    for (auto place = free_.begin(); place != free_.end(); ++place) {
        const auto [offset, free_here] = *place;
        if (free_here < bytes) continue;
        free_.erase(place);
        if (free_here > bytes) free_.emplace(offset + bytes, free_here - bytes);
        free_bytes_ -= bytes;
        return arena_.memory().data() + offset;
    }
    return nullptr;
}

void Staging::Slab::give(std::span<std::byte> block) {
    std::uint64_t offset = static_cast<std::uint64_t>(block.data() - arena_.memory().data());
    std::uint64_t bytes = block.size();
    free_bytes_ += bytes;
    auto after = free_.lower_bound(offset);
    if (after != free_.end() && after->first == offset + bytes) {
        bytes += after->second;
        after = free_.erase(after);
    }
    if (after != free_.begin()) {
        const auto before = std::prev(after);
        if (before->first + before->second == offset) {
            before->second += bytes;
            return;
        }
    }
    free_.emplace(offset, bytes);
}

std::byte* Staging::take_registered(std::uint64_t bytes) {
    for (const auto& slab : slabs_) {
        if (slab->retired) continue;
        if (std::byte* memory = slab->take(bytes)) return memory;
    }
    return nullptr;
}

// Counts a new slab, after unmaking those that nobody uses where they are in its way.
std::uint64_t Staging::reserve(std::uint64_t bytes) {
    std::uint64_t left = budget_bytes_ - registered_bytes_;
    if (left < bytes) {
        std::uint64_t idle = 0;
        for (const auto& slab : slabs_) idle += slab->whole() ? slab->bytes() : 0;
        if (left + idle < bytes) return 0;
        std::erase_if(slabs_, [](const auto& slab) { return slab->whole(); });
        registered_bytes_ -= idle;
        left += idle;
    }
    const std::uint64_t spare = std::min({registered_bytes_, kSlabMin, align_down(left, kStagingStep)});
    const std::uint64_t reserved = std::max(bytes, spare);
    registered_bytes_ += reserved;
    peak_bytes_ = std::max(peak_bytes_, registered_bytes_);
    return reserved;
}

std::unique_ptr<Staging::Slab> Staging::make_slab(std::uint64_t bytes) const {
    return std::make_unique<Slab>(device_, os::ArenaOptions{bytes, numa_node_});
}

std::byte* Staging::add_slab(std::uint64_t reserved, std::uint64_t bytes) {
    std::unique_ptr<Slab> slab;
    try {
        slab = make_slab(reserved);
    } catch (const Error&) {
        const std::lock_guard lock(mutex_);
        registered_bytes_ -= reserved;
        if (reserved == bytes) throw;
    }
    const std::lock_guard lock(mutex_);
    if (!slab) {  // the spare bytes may have been too much
        slab = make_slab(bytes);
        registered_bytes_ += bytes;
    }
    std::byte* memory = slab->take(bytes);
    slabs_.push_back(std::move(slab));
    return memory;
}

std::span<std::byte> Staging::take(std::uint64_t bytes) {
    {
        const std::lock_guard lock(mutex_);
        if (std::byte* memory = take_registered(bytes)) return {memory, bytes};
    }
    // One slab at a time: workers that start together find room in what the first of them registers.
    const std::lock_guard grows(grow_mutex_);
    std::uint64_t reserved = 0;
    {
        const std::lock_guard lock(mutex_);
        if (std::byte* memory = take_registered(bytes)) return {memory, bytes};
        reserved = reserve(bytes);
    }
    if (reserved == 0) return {};
    return {add_slab(reserved, bytes), bytes};
}

void Staging::take_back(std::span<std::byte> block, bool retire) {
    const std::lock_guard lock(mutex_);
    const auto slab =
        std::find_if(slabs_.begin(), slabs_.end(), [&](const auto& one) { return one->holds(block.data()); });
    (*slab)->give(block);
    (*slab)->retired = (*slab)->retired || retire;
    if (!(*slab)->retired || !(*slab)->whole()) return;
    registered_bytes_ -= (*slab)->bytes();
    slabs_.erase(slab);
}

void Staging::give(std::span<std::byte> block) { take_back(block, false); }

void Staging::retire(std::span<std::byte> block) { take_back(block, true); }

std::uint64_t Staging::registered_bytes() const {
    const std::lock_guard lock(mutex_);
    return registered_bytes_;
}

std::uint64_t Staging::peak_bytes() const {
    const std::lock_guard lock(mutex_);
    return peak_bytes_;
}

}  // namespace penstock::engine
