// Which CPUs and memory are near which NUMA node, and putting threads and memory there.
//
// Everything here is a preference: on a machine with one node, without NUMA in the kernel, or with node -1 (unknown)
// the functions do nothing and say so by returning false.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace penstock::os {

std::vector<int> numa_nodes();            // nodes with CPUs or memory; empty when the kernel has no NUMA
std::vector<int> cpus_of_node(int node);  // empty when there is no such node

// Runs the calling thread on the CPUs of `node` that it is allowed to use. False: nothing was changed.
bool place_thread_near(int node) noexcept;
// Pages of the range not touched yet prefer `node`. The range is page aligned. False: nothing was changed.
bool place_memory_near(int node, std::span<std::byte> memory) noexcept;

// "0-3,8,10-11" as the kernel writes CPU and node lists. Stops at the first thing that is not a list.
std::vector<int> parse_cpu_list(std::string_view text);

}  // namespace penstock::os
