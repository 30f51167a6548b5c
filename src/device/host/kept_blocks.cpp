// See kept_blocks.hpp.
#include "device/host/kept_blocks.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <new>

namespace penstock::device {
namespace {

constexpr std::uint64_t kHugeBytes = 2 * kMiB;  // of a large page
constexpr std::uint64_t kMostSpare = 8;         // a kept block may be larger by this part of what is asked for
// A block is idle once so much found no room since it was given back: this part of its size, because the first use of
// 64 MiB of large pages takes 0.09 ms a MiB, and that of 512 KiB of small ones 0.5.
constexpr std::uint64_t kTurnedAwayShare = 8;

std::uintptr_t address_of_block(const void* memory) noexcept { return reinterpret_cast<std::uintptr_t>(memory); }

// Of what no system has, so many that there is no mapping of them.
std::uint64_t whole_pages(std::uint64_t bytes) noexcept {
    return (std::min(bytes, UINT64_MAX - 2 * kHugeBytes) + kPageBytes - 1) / kPageBytes * kPageBytes;
}

// A mapping whose large pages are whole, so that its first use takes one fault for 2 MiB and not 512. Where the system
// has no large pages to give, it gives small ones.
void* take_mapping(std::uint64_t bytes) noexcept {
    const std::uint64_t spare = bytes < kHugeBytes ? 0 : kHugeBytes;
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* const mapped = ::mmap(nullptr, bytes + spare, PROT_READ | PROT_WRITE, kFlags, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    if (spare == 0) return mapped;
    const std::uint64_t before = (kHugeBytes - address_of_block(mapped) % kHugeBytes) % kHugeBytes;
    auto* const memory = static_cast<std::byte*>(mapped) + before;
    if (before != 0) ::munmap(mapped, before);
    if (spare != before) ::munmap(memory + bytes, spare - before);
    ::madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
}

}  // namespace

HostBlocks::~HostBlocks() { unmap_all(); }

HostBlock HostBlocks::take_new(std::uint64_t bytes) noexcept {
    const std::uint64_t whole = whole_pages(bytes);
    return {static_cast<std::byte*>(take_mapping(whole)), whole};
}

HostBlock HostBlocks::take(std::uint64_t bytes) noexcept {
    HostBlock block = take_kept(whole_pages(bytes));
    if (block.base == nullptr) block = take_new(bytes);
    if (block.base != nullptr) return block;
    unmap_all();  // there may be room then
    return take_new(bytes);
}

HostBlock HostBlocks::take_kept(std::uint64_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    auto found = kept_.lower_bound(bytes);
    if (found == kept_.end() || found->first - bytes > bytes / kMostSpare) return {};
    found = std::prev(kept_.upper_bound(found->first));  // the last that came back: the caches have it
    const HostBlock block{found->second.base, found->first};
    kept_.erase(found);
    kept_bytes_ -= block.bytes;
    return block;
}

void HostBlocks::give_back(const HostBlock& block) noexcept {
    if (block.bytes > kMostKept || !keep(block)) unmap(block);
}

bool HostBlocks::keep(const HostBlock& block) noexcept {
    const std::lock_guard lock(mutex_);
    if (kept_bytes_ + block.bytes > kMostKept) {
        turned_away_bytes_ += block.bytes;
        unmap_idle(kMostKept - block.bytes);
        if (kept_bytes_ + block.bytes > kMostKept) return false;
    }
    try {
        kept_.emplace(block.bytes, KeptBlock{block.base, turned_away_bytes_});
    } catch (const std::bad_alloc&) {
        return false;
    }
    kept_bytes_ += block.bytes;
    return true;
}

void HostBlocks::unmap_idle(std::uint64_t most_bytes) noexcept {
    for (auto at = kept_.begin(); at != kept_.end() && kept_bytes_ > most_bytes;) {
        const auto& [bytes, kept] = *at;
        if (turned_away_bytes_ - kept.turned_away_bytes < bytes / kTurnedAwayShare) {
            ++at;
            continue;
        }
        unmap({kept.base, bytes});
        kept_bytes_ -= bytes;
        at = kept_.erase(at);
    }
}

void HostBlocks::unmap(const HostBlock& block) noexcept { ::munmap(block.base, block.bytes); }

std::uint64_t HostBlocks::kept_bytes() const noexcept {
    const std::lock_guard lock(mutex_);
    return kept_bytes_;
}

void HostBlocks::unmap_all() noexcept {
    const std::lock_guard lock(mutex_);
    for (const auto& [bytes, kept] : kept_) unmap({kept.base, bytes});
    kept_.clear();
    kept_bytes_ = 0;
}

}  // namespace penstock::device
