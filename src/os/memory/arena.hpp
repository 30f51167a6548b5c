// Arena: the owner of one large aligned piece of host memory, for staging.
//
// Anonymous memory aligned to 2 MiB, on huge pages where the kernel gives them and near a NUMA node where one is named.
// The address range never moves or grows. Whoever registers it with a device or a ring undoes that before the Arena
// goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::os {

struct ArenaOptions {
    std::uint64_t bytes = 0;  // rounded up to 2 MiB; not 0
    int numa_node = -1;       // preferred; -1: no preference
    bool huge_pages = true;   // transparent huge pages are asked for
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
    bool near_node() const noexcept { return near_node_; }  // the kernel took the NUMA preference

    // Makes every page exist now. Without it the first transfer pays for page faults.
    void touch() const noexcept;

  private:
    std::span<std::byte> memory_;
    bool near_node_ = false;
};

}  // namespace penstock::os
