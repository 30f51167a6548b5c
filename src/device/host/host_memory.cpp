// See host_memory.hpp. Memory is private anonymous mappings, aligned to pages and allocated by the kernel at first use.
// A mapping takes some microseconds to make, to touch and to take away: small memory is of the heap. It starts on a
// page too, because queues of NVMe and O_DIRECT want that.
#include "device/host/host_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <memory_resource>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace penstock::device {
namespace {

constexpr std::uint64_t kHeapBytes = 64 * kKiB;
constexpr std::size_t kPageBytes = 4096;
constexpr std::uint64_t kHugeBytes = 2 * kMiB;  // of a large page

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

// A mapping whose large pages are whole, so that its first use takes one fault for 2 MiB and not 512. Where the system
// has no large pages to give, it gives small ones.
void* take_mapping(std::uint64_t bytes) {
    const std::uint64_t spare = bytes < kHugeBytes ? 0 : kHugeBytes;
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* const mapped = ::mmap(nullptr, bytes + spare, PROT_READ | PROT_WRITE, kFlags, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    if (spare == 0) return mapped;
    const std::uint64_t before = (kHugeBytes - address(mapped) % kHugeBytes) % kHugeBytes;
    const std::uint64_t whole = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
    auto* const memory = static_cast<std::byte*>(mapped) + before;
    if (before != 0) ::munmap(mapped, before);
    ::munmap(memory + whole, (bytes + spare + kPageBytes - 1) / kPageBytes * kPageBytes - before - whole);
    ::madvise(memory, whole, MADV_HUGEPAGE);
    return memory;
}

// Returns nullptr and sets errno where there is none.
void* take_memory(std::uint64_t bytes) {
    if (bytes <= kHeapBytes) {
        try {
            return std::pmr::new_delete_resource()->allocate(bytes, kPageBytes);
        } catch (const std::bad_alloc&) {
            errno = ENOMEM;
            return nullptr;
        }
    }
    return take_mapping(bytes);
}

void give_memory_back(std::byte* memory, std::uint64_t bytes) {
    if (bytes <= kHeapBytes) {
        std::pmr::new_delete_resource()->deallocate(memory, bytes, kPageBytes);
    } else {
        ::munmap(memory, bytes);
    }
}

bool counts(MemoryKind kind) noexcept { return kind == MemoryKind::device || kind == MemoryKind::managed; }

}  // namespace

HostRegion::HostRegion(std::byte* base, std::uint64_t bytes, MemoryKind kind,
                       std::shared_ptr<std::atomic<std::uint64_t>> used)
    : base_(base), bytes_(bytes), kind_(kind), used_(std::move(used)) {}

HostRegion::~HostRegion() {
    if (!owned()) return;
    give_memory_back(base_, bytes_);
    used_->fetch_sub(bytes_, std::memory_order_relaxed);
}

bool HostRegion::holds(const void* memory, std::uint64_t bytes) const noexcept {
    const std::uintptr_t begin = address(base_);
    const std::uintptr_t asked = address(memory);
    return asked >= begin && asked - begin <= bytes_ && bytes <= bytes_ - (asked - begin);
}

HostMemory::HostMemory(std::uint64_t capacity_bytes)
    : capacity_bytes_(capacity_bytes == 0 ? half_of_machine_memory() : capacity_bytes),
      used_bytes_(std::make_shared<std::atomic<std::uint64_t>>(0)),
      other_bytes_(std::make_shared<std::atomic<std::uint64_t>>(0)) {}

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
    void* memory = take_memory(bytes);
    if (memory == nullptr) {
        const int error = errno;
        used->fetch_sub(bytes, std::memory_order_relaxed);
        throw allocation_error(kind, bytes, errno_info("allocate", "", error).cause);
    }
    auto region = std::make_shared<const HostRegion>(static_cast<std::byte*>(memory), bytes, kind, used);
    const std::unique_lock lock(mutex_);
    regions_.emplace(address(memory), std::move(region));
    return memory;
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
