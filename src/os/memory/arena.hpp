// Arena: owns one large aligned piece of host memory, for staging.
//
// The memory is anonymous, aligned to 2 MiB, on huge pages if the kernel provides them, and near the NUMA node that is
// named. The address range never moves or grows. Requires: a caller that registers the memory with a device or a ring
// undoes that before it destroys the Arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::os {

struct ArenaOptions {
    std::uint64_t bytes = 0;  // rounded up to 2 MiB; not 0
    int numa_node = -1;       // preferred node; -1: no preference
    bool huge_pages = true;   // ask for transparent huge pages
};

class Arena {
  public:
    Arena() noexcept = default;
    explicit Arena(const ArenaOptions& options);  // throws Error{out_of_memory} with the size
    Arena(Arena&& other) noexcept;
    Arena& operator=(Arena&& other) noexcept;
    ~Arena();

    std::span<std::byte> memory() const noexcept { return memory_; }
    std::uint64_t bytes() const noexcept { return memory_.size(); }
    bool near_node() const noexcept { return near_node_; }  // the kernel accepted the NUMA preference

    // Makes the kernel allocate every page now. Otherwise the first transfer pays for the page faults. Threads share a
    // large piece: one core makes 5 GB of pages a second, less than a link moves. They have ended when it returns.
    void touch() const noexcept;

  private:
    std::span<std::byte> memory_;
    bool near_node_ = false;
};

}  // namespace penstock::os
