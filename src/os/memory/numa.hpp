// Which CPUs and memory are near which NUMA node, and how to place threads and memory there.
//
// Everything here is a preference. On a machine with one node, without NUMA in the kernel, or with node -1 (unknown),
// the functions do nothing and return false.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace penstock::os {

std::vector<int> numa_nodes();            // nodes with CPUs or memory; empty if the kernel has no NUMA
std::vector<int> cpus_of_node(int node);  // empty if there is no such node

// Moves the calling thread to those CPUs of `node` that it may use. False: nothing changed.
bool place_thread_near(int node) noexcept;
// The kernel prefers `node` for pages of the range that were not touched yet. Requires: the range is page aligned.
// False: nothing changed.
bool place_memory_near(int node, std::span<std::byte> memory) noexcept;

// Parses "0-3,8,10-11", the kernel's form of CPU and node lists. Stops at the first text that does not fit.
std::vector<int> parse_cpu_list(std::string_view text);

}  // namespace penstock::os
