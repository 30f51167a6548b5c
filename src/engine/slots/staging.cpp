// See staging.hpp. A thread makes a slab without the mutex, and the slab counts meanwhile; it unmakes slabs under it.
#include "engine/slots/staging.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

#include "penstock/error.hpp"
#include "penstock/plan.hpp"

namespace penstock::engine {
namespace {

constexpr std::uint64_t kSlabMin = 32 * kMiB;  // once as much is registered: room for several small sets of slots

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

void Staging::Slab::fill(int byte_value) const { std::memset(arena_.memory().data(), byte_value, arena_.bytes()); }

// Takes from the slab with the least room that is enough, so that other slabs stay whole for large blocks.
std::byte* Staging::take_registered(std::uint64_t bytes) {
    std::vector<Slab*> usable;
    for (const auto& slab : slabs_) {
        if (!slab->retired && slab->free_bytes() >= bytes) usable.push_back(slab.get());
    }
    std::sort(usable.begin(), usable.end(),
              [](const Slab* a, const Slab* b) { return a->free_bytes() < b->free_bytes(); });
    for (Slab* slab : usable) {
        if (std::byte* memory = slab->take(bytes)) return memory;
    }
    return nullptr;
}

// Unmakes unused slabs, the smallest first, until `bytes` fit into the budget. False: they cannot.
bool Staging::make_room(std::uint64_t bytes) {
    std::vector<Slab*> idle;
    std::uint64_t room = budget_bytes_ - registered_bytes_;
    std::uint64_t most = room;
    for (const auto& slab : slabs_) {
        if (!slab->whole()) continue;
        idle.push_back(slab.get());
        most += slab->bytes();
    }
    if (most < bytes) return false;
    std::sort(idle.begin(), idle.end(), [](const Slab* a, const Slab* b) { return a->bytes() < b->bytes(); });
    for (const Slab* slab : idle) {
        if (room >= bytes) break;
        room += slab->bytes();
        registered_bytes_ -= slab->bytes();
        std::erase_if(slabs_, [slab](const auto& one) { return one.get() == slab; });
    }
    return true;
}

// Counts a new slab. 0: there is no room.
std::uint64_t Staging::reserve(std::uint64_t bytes) {
    if (!make_room(bytes)) return 0;
    const std::uint64_t left = align_down(budget_bytes_ - registered_bytes_, kStagingStep);
    const std::uint64_t reserved = std::max(bytes, std::min({registered_bytes_, kSlabMin, left}));
    registered_bytes_ += reserved;
    peak_bytes_ = std::max(peak_bytes_, registered_bytes_);
    return reserved;
}

std::unique_ptr<Staging::Slab> Staging::make_slab(std::uint64_t bytes) const {
    return std::make_unique<Slab>(device_, os::ArenaOptions{bytes, numa_node_});
}

void Staging::uncount(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    registered_bytes_ -= bytes;
}

// When the system does not give the spare bytes, the slab is made without them.
std::byte* Staging::add_slab(std::uint64_t reserved, std::uint64_t bytes) {
    try {
        std::unique_ptr<Slab> slab = make_slab(reserved);
        const std::lock_guard lock(mutex_);
        slabs_.push_back(std::move(slab));
        return slabs_.back()->take(bytes);
    } catch (...) {
        uncount(reserved == bytes ? bytes : reserved - bytes);
        if (reserved == bytes) throw;
    }
    return add_slab(bytes, bytes);
}

std::span<std::byte> Staging::take(std::uint64_t bytes) {
    {
        const std::lock_guard lock(mutex_);
        if (std::byte* memory = take_registered(bytes)) return {memory, bytes};
    }
    // Threads make one slab at a time: workers that start together find room in the slab of the first.
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

void Staging::fill(int byte_value) {
    const std::lock_guard lock(mutex_);
    for (const auto& slab : slabs_) {
        if (!slab->retired) slab->fill(byte_value);
    }
}

std::uint64_t Staging::free_bytes() const {
    const std::lock_guard lock(mutex_);
    std::uint64_t free = budget_bytes_ - registered_bytes_;
    for (const auto& slab : slabs_) free += slab->retired ? 0 : slab->free_bytes();
    return free;
}

std::uint64_t Staging::registered_bytes() const {
    const std::lock_guard lock(mutex_);
    return registered_bytes_;
}

std::uint64_t Staging::peak_bytes() const {
    const std::lock_guard lock(mutex_);
    return peak_bytes_;
}

}  // namespace penstock::engine
