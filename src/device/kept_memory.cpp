// See kept_memory.hpp.
#include "device/kept_memory.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "penstock/error.hpp"

namespace penstock::device {
namespace {

// Eight sizes between a power of two and the next one: at most an eighth is not used.
std::uint64_t size_of_block(std::uint64_t bytes) {
    constexpr std::uint64_t kSmallest = 4096, kSizes = 8;
    if (bytes <= kSmallest) return kSmallest;
    const std::uint64_t step = std::max(kSmallest, std::bit_floor(bytes - 1) / kSizes);
    return (bytes + step - 1) / step * step;
}

}  // namespace

KeptMemory::KeptMemory(MemorySource source, std::uint64_t most_bytes, std::uint64_t spare_bytes)
    : source_(std::move(source)), most_bytes_(most_bytes), spare_bytes_(spare_bytes) {}

KeptMemory::~KeptMemory() { release_all(); }

void* KeptMemory::take(std::uint64_t bytes) {
    if (bytes > kLargestBlock) return allocate(bytes);
    const std::uint64_t size = size_of_block(bytes);
    Blocks one = take_kept(size, false);
    if (one.empty()) one = try_new(size);
    if (one.empty()) one = take_kept(size, true);
    if (one.empty()) return hold(take_new(size));
    if (make_settled(one.front())) return hold(std::move(one));
    release(one);
    return hold(take_new(size));
}

KeptMemory::Blocks KeptMemory::take_kept(std::uint64_t bytes, bool may_wait) noexcept {
    Blocks one;
    const std::lock_guard lock(mutex_);
    const auto at = std::find_if(kept_.begin(), kept_.end(), [&](const SpareBlock& it) { return it.bytes == bytes; });
    if (at == kept_.end()) return one;
    if (!may_wait && at->turn > settled_turn_ && !is_worth_a_wait(bytes)) return one;
    one.splice(one.end(), kept_, at);
    kept_bytes_ -= bytes;
    return one;
}

// Whether there are as many blocks of the size as there should be: the wait is then for all of them. Or no room for one
// more: it would push out one that is wanted soon, and to release it waits for the device too.
bool KeptMemory::is_worth_a_wait(std::uint64_t bytes) const noexcept {
    if (kept_bytes_ + bytes > most_bytes_ || kept_.size() >= kMostKeptBlocks || turn_ < spares_turn_) return true;
    const auto is_of_size = [&](const SpareBlock& it) { return it.bytes == bytes; };
    const auto there = static_cast<std::uint64_t>(std::count_if(kept_.begin(), kept_.end(), is_of_size));
    return there >= std::clamp<std::uint64_t>(spare_bytes_ / bytes, 1, kMostSpares);
}

// None where the device has no more memory. Then no spare blocks are asked for during the next turns.
KeptMemory::Blocks KeptMemory::try_new(std::uint64_t bytes) {
    Blocks one(1);
    try {
        one.front() = {source_.allocate(bytes), bytes};
    } catch (const Error&) {
        one.clear();
        const std::lock_guard lock(mutex_);
        spares_turn_ = turn_ + kTurnsWithoutSpares;
    }
    return one;
}

KeptMemory::Blocks KeptMemory::take_new(std::uint64_t bytes) {
    Blocks one(1);
    one.front() = {allocate(bytes), bytes};
    return one;
}

void* KeptMemory::allocate(std::uint64_t bytes) {
    try {
        return source_.allocate(bytes);
    } catch (const Error&) {
        if (kept_bytes() == 0) throw;
    }
    release_all();
    return source_.allocate(bytes);
}

// One wait settles all blocks that were given back before it.
bool KeptMemory::make_settled(const SpareBlock& block) {
    std::uint64_t turn = 0;
    {
        const std::lock_guard lock(mutex_);
        if (block.turn <= settled_turn_) return true;
        turn = turn_;
    }
    if (!source_.settle()) return false;
    const std::lock_guard lock(mutex_);
    settled_turn_ = std::max(settled_turn_, turn);
    return true;
}

void* KeptMemory::hold(Blocks one) {
    void* const memory = one.front().memory;
    try {
        const std::lock_guard lock(mutex_);
        held_[memory].swap(one);
    } catch (...) {
        release(one);
        throw;
    }
    return memory;
}

bool KeptMemory::give_back(void* memory) noexcept {
    Blocks released;
    {
        const std::lock_guard lock(mutex_);
        const auto at = held_.find(memory);
        if (at == held_.end()) return false;
        Blocks one = std::move(at->second);
        held_.erase(at);
        one.front().turn = ++turn_;
        keep(std::move(one), released);
    }
    release(released);
    return true;
}

// Blocks that were given back first make room. What is `released` is the caller's to release.
void KeptMemory::keep(Blocks one, Blocks& released) noexcept {
    const std::uint64_t bytes = one.front().bytes;
    if (bytes > most_bytes_) {
        released.splice(released.end(), one);
        return;
    }
    kept_.splice(kept_.end(), one);
    kept_bytes_ += bytes;
    while (kept_bytes_ > most_bytes_ || kept_.size() > kMostKeptBlocks) {
        kept_bytes_ -= kept_.front().bytes;
        released.splice(released.end(), kept_, kept_.begin());
    }
}

bool KeptMemory::keeps(const void* address) const noexcept {
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    const std::lock_guard lock(mutex_);
    return std::any_of(kept_.begin(), kept_.end(), [&](const SpareBlock& block) {
        return wanted - reinterpret_cast<std::uintptr_t>(block.memory) < block.bytes;
    });
}

std::uint64_t KeptMemory::kept_bytes() const noexcept {
    const std::lock_guard lock(mutex_);
    return kept_bytes_;
}

void KeptMemory::release(const Blocks& blocks) noexcept {
    for (const SpareBlock& block : blocks) source_.release(block.memory);
}

void KeptMemory::release_all() noexcept {
    Blocks released;
    {
        const std::lock_guard lock(mutex_);
        released.swap(kept_);
        kept_bytes_ = 0;
    }
    release(released);
}

}  // namespace penstock::device
