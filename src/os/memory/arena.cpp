// See arena.hpp. Maps 2 MiB more than needed and unmaps both ends, because mmap aligns to pages only.
#include "os/memory/arena.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <thread>
#include <utility>

#include "os/memory/numa.hpp"
#include "penstock/error.hpp"
#include "penstock/types.hpp"

namespace penstock::os {
namespace {

constexpr std::uint64_t kAlignment = 2 * kMiB;
constexpr std::size_t kTouchedByOne = 8 * kMiB;  // as much as repays a thread
constexpr std::size_t kTouchingMost = 8;
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, Linux 5.14, which older libc headers lack

std::span<std::byte> map_aligned(std::uint64_t bytes) {
    void* mapping = ::mmap(nullptr, bytes + kAlignment, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) {
        ErrorInfo info = errno_info("map staging memory", {}, errno);
        info.code = ErrorCode::out_of_memory;
        info.length_bytes = bytes;
        info.advice = "lower the staging budget, or raise the limits on memory (ulimit -v, cgroup)";
        throw Error(std::move(info));
    }
    auto* start = static_cast<std::byte*>(mapping);
    const std::uint64_t head =
        align_up(reinterpret_cast<std::uintptr_t>(start), kAlignment) - reinterpret_cast<std::uintptr_t>(start);
    if (head > 0) ::munmap(start, head);
    if (head < kAlignment) ::munmap(start + head + bytes, kAlignment - head);
    return {start + head, bytes};
}

std::size_t touching_threads() noexcept {
    return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kTouchingMost);
}

void touch_pages(std::span<std::byte> memory) noexcept {
    if (memory.empty() || ::madvise(memory.data(), memory.size(), kPopulateWrite) == 0) return;
    const auto step = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    for (std::size_t at = 0; at < memory.size(); at += step) {
        auto* page = reinterpret_cast<volatile unsigned char*>(memory.data() + at);
        *page = *page;  // keeps the contents
    }
}

}  // namespace

Arena::Arena(const ArenaOptions& options) {
    if (options.bytes == 0) throw Error(ErrorCode::invalid_argument, "map staging memory", "zero bytes asked for");
    memory_ = map_aligned(align_up(options.bytes, kAlignment));
    if (options.huge_pages) ::madvise(memory_.data(), memory_.size(), MADV_HUGEPAGE);
    near_node_ = place_memory_near(options.numa_node, memory_);
}

Arena::Arena(Arena&& other) noexcept
    : memory_(std::exchange(other.memory_, {})), near_node_(std::exchange(other.near_node_, false)) {}

Arena& Arena::operator=(Arena&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(near_node_, other.near_node_);
    return *this;
}

Arena::~Arena() {
    if (!memory_.empty()) ::munmap(memory_.data(), memory_.size());
}

void Arena::touch() const noexcept {
    // On a machine of several nodes pages come to the node of the thread, unless a node was named.
    const bool any_thread_will_do = near_node_ || numa_nodes().size() < 2;
    const std::size_t most = any_thread_will_do ? touching_threads() : 1;
    const std::size_t shares = std::clamp<std::size_t>(memory_.size() / kTouchedByOne, 1, most);
    const std::size_t share = align_up((memory_.size() + shares - 1) / shares, kAlignment);
    std::array<std::thread, kTouchingMost> others;
    std::size_t left = 0;  // the calling thread's part is what no other thread has
    try {
        for (std::size_t i = 0; i + 1 < shares && left + share < memory_.size(); ++i) {
            others[i] = std::thread(touch_pages, memory_.subspan(left, share));
            left += share;
        }
    } catch (...) {  // of a limit of threads, or without memory for one
    }
    touch_pages(memory_.subspan(left));
    for (std::thread& one : others) {
        if (one.joinable()) one.join();
    }
}

}  // namespace penstock::os
