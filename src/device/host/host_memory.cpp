// See host_memory.hpp. Memory is private anonymous mappings, aligned to pages and allocated by the kernel at first use.
// A mapping takes some microseconds to make, to touch and to take away: small memory is of the heap. It starts on a
// page too, because queues of NVMe and O_DIRECT want that. Memory of the device, which no caller places by its first
// touch, is taken from mappings that others gave back.
#include "device/host/host_memory.hpp"

#include <unistd.h>

#include <cerrno>
#include <memory_resource>
#include <mutex>
#include <new>
#include <utility>

namespace penstock::device {
namespace {

constexpr std::uint64_t kHeapBytes = 64 * kKiB;

std::uint64_t half_of_machine_memory() noexcept {
    const long pages = ::sysconf(_SC_PHYS_PAGES);
    const long page_bytes = ::sysconf(_SC_PAGESIZE);
    if (pages <= 0 || page_bytes <= 0) return kGiB;
    return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes) / 2;
}

std::uintptr_t address(const void* memory) noexcept { return reinterpret_cast<std::uintptr_t>(memory); }

Error allocation_error(MemoryKind kind, std::uint64_t bytes, const std::string& cause) {
    return Error(ErrorCode::out_of_memory, "allocate",
                 std::to_string(bytes) + " bytes of " + to_string(kind) + " memory on host: " + cause,
                 "release buffers or ask for less");
}

// Base null, and errno set, where there is none.
HostBlock take_heap(std::uint64_t bytes) {
    try {
        return {static_cast<std::byte*>(std::pmr::new_delete_resource()->allocate(bytes, kPageBytes)), bytes};
    } catch (const std::bad_alloc&) {
        errno = ENOMEM;
        return {};
    }
}

bool counts(MemoryKind kind) noexcept { return kind == MemoryKind::device || kind == MemoryKind::managed; }

}  // namespace

HostRegion::HostRegion(const HostBlock& block, std::uint64_t bytes, MemoryKind kind, HostOwner owner)
    : base_(block.base), bytes_(bytes), kind_(kind), block_bytes_(block.bytes), owner_(std::move(owner)) {}

HostRegion::~HostRegion() {
    if (!owned()) return;
    const HostBlock block{base_, block_bytes_};
    if (bytes_ <= kHeapBytes) {
        std::pmr::new_delete_resource()->deallocate(base_, block_bytes_, kPageBytes);
    } else if (kind_ == MemoryKind::device) {
        owner_.blocks->give_back(block);
    } else {
        HostBlocks::unmap(block);
    }
    owner_.used->fetch_sub(bytes_, std::memory_order_relaxed);
}

bool HostRegion::holds(const void* memory, std::uint64_t bytes) const noexcept {
    const std::uintptr_t begin = address(base_);
    const std::uintptr_t asked = address(memory);
    return asked >= begin && asked - begin <= bytes_ && bytes <= bytes_ - (asked - begin);
}

HostMemory::HostMemory(std::uint64_t capacity_bytes)
    : capacity_bytes_(capacity_bytes == 0 ? half_of_machine_memory() : capacity_bytes),
      used_bytes_(std::make_shared<std::atomic<std::uint64_t>>(0)),
      other_bytes_(std::make_shared<std::atomic<std::uint64_t>>(0)),
      blocks_(std::make_shared<HostBlocks>()) {}

std::uint64_t HostMemory::free_bytes() const noexcept {
    return capacity_bytes_ - used_bytes_->load(std::memory_order_relaxed);
}

void HostMemory::reserve(MemoryKind kind, std::uint64_t bytes) {
    if (!counts(kind)) {
        other_bytes_->fetch_add(bytes, std::memory_order_relaxed);
        return;
    }
    std::uint64_t used = used_bytes_->load(std::memory_order_relaxed);
    do {
        if (bytes > capacity_bytes_ - used) {
            throw allocation_error(
                kind, bytes,
                std::to_string(capacity_bytes_ - used) + " of " + std::to_string(capacity_bytes_) + " bytes are free");
        }
    } while (!used_bytes_->compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
}

void* HostMemory::allocate(MemoryKind kind, std::uint64_t bytes) {
    if (bytes == 0) throw Error(ErrorCode::invalid_argument, "allocate", "0 bytes asked", "ask for at least 1");
    reserve(kind, bytes);
    const auto& used = counts(kind) ? used_bytes_ : other_bytes_;
    const HostBlock block = bytes <= kHeapBytes          ? take_heap(bytes)
                            : kind == MemoryKind::device ? blocks_->take(bytes)
                                                         : HostBlocks::take_new(bytes);
    if (block.base == nullptr) {
        const int error = errno;
        used->fetch_sub(bytes, std::memory_order_relaxed);
        throw allocation_error(kind, bytes, errno_info("allocate", "", error).cause);
    }
    auto region = std::make_shared<const HostRegion>(block, bytes, kind, HostOwner{used, blocks_});
    const std::unique_lock lock(mutex_);
    regions_.emplace(address(block.base), std::move(region));
    return block.base;
}

void HostMemory::erase(const void* memory, bool owned) noexcept {
    std::shared_ptr<const HostRegion> last;  // unmapped after the lock is released
    const std::unique_lock lock(mutex_);
    const auto at = regions_.find(address(memory));
    if (at == regions_.end() || at->second->owned() != owned) return;
    last = std::move(at->second);
    regions_.erase(at);
}

void HostMemory::release(const void* memory) noexcept { erase(memory, true); }

void HostMemory::unregister_range(const void* memory) noexcept { erase(memory, false); }

bool HostMemory::register_range(void* memory, std::uint64_t bytes, std::string& why) {
    if (memory == nullptr || bytes == 0) {
        why = "no memory was given";
        return false;
    }
    const std::unique_lock lock(mutex_);
    const auto after = regions_.upper_bound(address(memory));
    const bool meets_next = after != regions_.end() && after->first - address(memory) < bytes;
    const bool meets_previous = after != regions_.begin() && std::prev(after)->second->holds(memory, 1);
    if (meets_next || meets_previous) {
        why = "part or all of the memory is already registered";
        return false;
    }
    regions_.emplace(address(memory),
                     std::make_shared<const HostRegion>(static_cast<std::byte*>(memory), bytes, MemoryKind::pinned));
    return true;
}

std::shared_ptr<const HostRegion> HostMemory::find(const void* memory) const {
    const std::shared_lock lock(mutex_);
    const auto after = regions_.upper_bound(address(memory));
    if (after == regions_.begin()) return nullptr;
    const auto& region = std::prev(after)->second;
    return region->holds(memory, 1) ? region : nullptr;
}

std::shared_ptr<const HostRegion> HostMemory::find_device_side(const void* memory, std::uint64_t bytes) const {
    auto region = find(memory);
    if (!region || region->kind() == MemoryKind::system || !region->holds(memory, bytes)) return nullptr;
    return region;
}

}  // namespace penstock::device
