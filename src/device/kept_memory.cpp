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

KeptMemory::KeptMemory(MemorySource source, std::uint64_t most_bytes)
    : source_(std::move(source)), most_bytes_(most_bytes) {}

KeptMemory::~KeptMemory() { release_all(); }

void* KeptMemory::take(std::uint64_t bytes) {
    const std::uint64_t size = size_of_block(bytes);
    const SpareBlock block = take_kept(size);
    if (block.memory == nullptr) return take_new(size);
    if (make_settled(block)) {
        hold(block.memory, size);
        return block.memory;
    }
    source_.release(block.memory);
    return take_new(size);
}

KeptMemory::SpareBlock KeptMemory::take_kept(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto at = std::find_if(kept_.begin(), kept_.end(), [&](const SpareBlock& one) { return one.bytes == bytes; });
    if (at == kept_.end()) return {};
    const SpareBlock block = *at;
    kept_.erase(at);
    kept_bytes_ -= bytes;
    return block;
}

void* KeptMemory::take_new(std::uint64_t bytes) {
    void* memory = nullptr;
    try {
        memory = source_.allocate(bytes);
    } catch (const Error&) {
        if (kept_bytes() == 0) throw;
        release_all();
        memory = source_.allocate(bytes);
    }
    hold(memory, bytes);
    return memory;
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

void KeptMemory::hold(void* memory, std::uint64_t bytes) {
    try {
        const std::lock_guard lock(mutex_);
        held_[memory] = bytes;
    } catch (...) {
        source_.release(memory);
        throw;
    }
}

bool KeptMemory::give_back(void* memory) noexcept {
    std::deque<SpareBlock> released;
    try {
        const std::lock_guard lock(mutex_);
        const auto at = held_.find(memory);
        if (at == held_.end()) return false;
        const std::uint64_t bytes = at->second;
        held_.erase(at);
        keep({memory, bytes, ++turn_}, released);
    } catch (...) {
        source_.release(memory);
        return true;
    }
    for (const SpareBlock& block : released) source_.release(block.memory);
    return true;
}

// Blocks that were given back first make room. A block that is `released` is the caller's to release.
void KeptMemory::keep(const SpareBlock& block, std::deque<SpareBlock>& released) {
    if (block.bytes > most_bytes_) {
        released.push_back(block);
        return;
    }
    kept_.push_back(block);
    kept_bytes_ += block.bytes;
    while (kept_bytes_ > most_bytes_ || kept_.size() > kMostKeptBlocks) {
        released.push_back(kept_.front());
        kept_bytes_ -= kept_.front().bytes;
        kept_.pop_front();
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

void KeptMemory::release_all() noexcept {
    std::deque<SpareBlock> released;
    {
        const std::lock_guard lock(mutex_);
        released.swap(kept_);
        kept_bytes_ = 0;
    }
    for (const SpareBlock& block : released) source_.release(block.memory);
}

}  // namespace penstock::device
