// See numa.hpp. Uses sysfs, sched_setaffinity and the raw mbind system call, to avoid a dependency on libnuma.
#include "os/memory/numa.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <memory>
#include <string>

namespace penstock::os {
namespace {

constexpr int kMaxCpus = 8192;  // the upper bound of CONFIG_NR_CPUS on the supported architectures
constexpr int kPreferred = 1;   // MPOL_PREFERRED, linux/mempolicy.h
constexpr unsigned long kMaxNodes = 1024;

struct FreeCpuSet {
    void operator()(cpu_set_t* set) const noexcept { CPU_FREE(set); }
};
using CpuSet = std::unique_ptr<cpu_set_t, FreeCpuSet>;

std::vector<int> list_in(const std::string& name) {
    std::ifstream file(name);
    std::string line;
    std::getline(file, line);
    return parse_cpu_list(line);
}

bool number(std::string_view& text, int& value) noexcept {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || value < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
}

bool place_on(const std::vector<int>& cpus) {
    const std::size_t bytes = CPU_ALLOC_SIZE(kMaxCpus);
    const CpuSet allowed(CPU_ALLOC(kMaxCpus));
    const CpuSet chosen(CPU_ALLOC(kMaxCpus));
    if (!allowed || !chosen) return false;
    CPU_ZERO_S(bytes, allowed.get());
    CPU_ZERO_S(bytes, chosen.get());
    if (::sched_getaffinity(0, bytes, allowed.get()) != 0) return false;
    for (const int cpu : cpus) {
        if (cpu < kMaxCpus && CPU_ISSET_S(cpu, bytes, allowed.get())) CPU_SET_S(cpu, bytes, chosen.get());
    }
    return CPU_COUNT_S(bytes, chosen.get()) > 0 && ::sched_setaffinity(0, bytes, chosen.get()) == 0;
}

}  // namespace

std::vector<int> parse_cpu_list(std::string_view text) {
    std::vector<int> numbers;
    while (!text.empty()) {
        int first = 0;
        if (!number(text, first)) break;
        int last = first;
        if (text.starts_with('-')) {
            text.remove_prefix(1);
            if (!number(text, last)) break;
        }
        for (int value = first; value <= last && value - first < kMaxCpus; ++value) numbers.push_back(value);
        if (!text.starts_with(',')) break;
        text.remove_prefix(1);
    }
    return numbers;
}

std::vector<int> numa_nodes() { return list_in("/sys/devices/system/node/online"); }

std::vector<int> cpus_of_node(int node) {
    return node < 0 ? std::vector<int>{} : list_in("/sys/devices/system/node/node" + std::to_string(node) + "/cpulist");
}

bool place_thread_near(int node) noexcept try {
    return node >= 0 && numa_nodes().size() > 1 && place_on(cpus_of_node(node));
} catch (...) {
    return false;  // out of memory while reading sysfs: failing to prefer a node is no error
}

bool place_memory_near(int node, std::span<std::byte> memory) noexcept {
    if (node < 0 || static_cast<unsigned long>(node) >= kMaxNodes || memory.empty()) return false;
    constexpr std::size_t kBits = 8 * sizeof(unsigned long);
    unsigned long mask[kMaxNodes / kBits] = {};
    mask[static_cast<std::size_t>(node) / kBits] = 1ul << (static_cast<std::size_t>(node) % kBits);
    return ::syscall(SYS_mbind, memory.data(), memory.size(), kPreferred, mask, kMaxNodes, 0u) == 0;
}

}  // namespace penstock::os
