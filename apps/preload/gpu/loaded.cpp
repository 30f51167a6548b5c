// See loaded.hpp.
#include "preload/gpu/loaded.hpp"

#include <link.h>

#include <atomic>
#include <cstdint>
#include <cstring>

namespace preload {
namespace {

constexpr const char* kEngine = "libpenstock.so";

std::atomic<unsigned long long> seen{0};  // how often libraries were loaded when the list was last read
std::atomic<bool> cuda{false};
std::atomic<std::uintptr_t> engine_begin{0}, engine_end{0};
std::atomic<bool> without_lock{false};
std::atomic<const link_map*> last_seen{nullptr};  // of the list as it was read without the lock
std::atomic<unsigned> links_seen{0};

struct Loaded {
    const char* name;
    std::uintptr_t address;
    const ElfW(Phdr)* parts;
    int count;
};

bool is_named(const char* name, const char* wanted) {
    const char* slash = std::strrchr(name, '/');
    return std::strncmp(slash != nullptr ? slash + 1 : name, wanted, std::strlen(wanted)) == 0;
}

void note_engine(const Loaded& engine) {
    std::uintptr_t end = engine.address;
    for (int i = 0; i < engine.count; ++i) {
        const ElfW(Phdr)& part = engine.parts[i];
        if (part.p_type == PT_LOAD && engine.address + part.p_vaddr + part.p_memsz > end) {
            end = engine.address + part.p_vaddr + part.p_memsz;
        }
    }
    engine_end.store(end);
    engine_begin.store(engine.address);
}

int look(dl_phdr_info* info, std::size_t, void* first) {
    auto& is_first = *static_cast<bool*>(first);
    if (is_first && info->dlpi_adds == seen.load(std::memory_order_relaxed)) return 1;
    is_first = false;
    seen.store(info->dlpi_adds, std::memory_order_relaxed);
    if (is_named(info->dlpi_name, "libcuda.so")) cuda.store(true);
    if (is_named(info->dlpi_name, kEngine)) {
        note_engine({info->dlpi_name, info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum});
    }
    return 0;
}

// Whether libraries came or went since the last look. A library that went in favour of another is not noticed.
bool has_changed(const link_map* first) {
    const link_map* last = nullptr;
    unsigned links = 0;
    for (const link_map* one = first; one != nullptr; one = one->l_next) last = one, ++links;
    const bool is_other = last_seen.exchange(last) != last, are_more_or_fewer = links_seen.exchange(links) != links;
    return is_other || are_more_or_fewer;
}

void look_without_lock() {
    if (_r_debug.r_state != r_debug::RT_CONSISTENT || !has_changed(_r_debug.r_map)) return;
    for (const link_map* one = _r_debug.r_map; one != nullptr; one = one->l_next) {
        if (is_named(one->l_name, "libcuda.so")) cuda.store(true);
        if (!is_named(one->l_name, kEngine)) continue;
        const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(one->l_addr);
        const auto* parts = reinterpret_cast<const ElfW(Phdr)*>(one->l_addr + header->e_phoff);
        note_engine({one->l_name, one->l_addr, parts, header->e_phnum});
    }
}

void look_again() {
    if (without_lock.load(std::memory_order_relaxed)) return look_without_lock();
    bool first = true;
    ::dl_iterate_phdr(look, &first);
}

}  // namespace

bool has_cuda() {
    if (!cuda.load(std::memory_order_relaxed)) look_again();
    return cuda.load(std::memory_order_relaxed);
}

void read_list_without_lock() { without_lock.store(true); }

bool knows_cuda() { return cuda.load(std::memory_order_relaxed); }

bool is_of_engine(const void* address) {
    look_again();
    return is_in_engine(address);
}

bool is_in_engine(const void* address) {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return at >= engine_begin.load() && at < engine_end.load();
}

}  // namespace preload
