// See loaded.hpp.
#include "preload/gpu/loaded.hpp"

#include <link.h>

#include <atomic>
#include <cstdint>
#include <cstring>

namespace preload {
namespace {

std::atomic<unsigned long long> seen{0};  // how often libraries were loaded when the list was last read
std::atomic<bool> cuda{false};
std::atomic<std::uintptr_t> engine_begin{0}, engine_end{0};

bool is_named(const dl_phdr_info& info, const char* name) {
    const char* slash = std::strrchr(info.dlpi_name, '/');
    return std::strncmp(slash != nullptr ? slash + 1 : info.dlpi_name, name, std::strlen(name)) == 0;
}

void note_engine(const dl_phdr_info& info) {
    std::uintptr_t end = info.dlpi_addr;
    for (int i = 0; i < info.dlpi_phnum; ++i) {
        const ElfW(Phdr)& part = info.dlpi_phdr[i];
        if (part.p_type == PT_LOAD && info.dlpi_addr + part.p_vaddr + part.p_memsz > end) {
            end = info.dlpi_addr + part.p_vaddr + part.p_memsz;
        }
    }
    engine_end.store(end);
    engine_begin.store(info.dlpi_addr);
}

int look(dl_phdr_info* info, std::size_t, void* first) {
    auto& is_first = *static_cast<bool*>(first);
    if (is_first && info->dlpi_adds == seen.load(std::memory_order_relaxed)) return 1;
    is_first = false;
    seen.store(info->dlpi_adds, std::memory_order_relaxed);
    if (is_named(*info, "libcuda.so")) cuda.store(true);
    if (is_named(*info, "libpenstock.so")) note_engine(*info);
    return 0;
}

void look_again() {
    bool first = true;
    ::dl_iterate_phdr(look, &first);
}

}  // namespace

bool has_cuda() {
    if (!cuda.load(std::memory_order_relaxed)) look_again();
    return cuda.load(std::memory_order_relaxed);
}

bool knows_cuda() { return cuda.load(std::memory_order_relaxed); }

bool is_of_engine(const void* address) {
    look_again();
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return at >= engine_begin.load() && at < engine_end.load();
}

}  // namespace preload
