// See file_mapping.hpp.
#include "ondevice/files/file_mapping.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "os/file/file_stat.hpp"

namespace penstock::ondevice {
namespace {

// The most stripes that are mapped: the system allows a process some 65530 mappings, and others need some too.
constexpr u64 kStripesMax = 32768;

std::string failed_to_map() { return std::string("mmap: ") + std::strerror(errno); }

// The page that mappings of these files are multiples of: the system's, or the file's on hugetlbfs.
u64 page_of_mappings(const FileSet& set) {
    u64 page = 0;
    for (const FileHandle* file : set.files) page = std::max<u64>(page, os::mapping_page_bytes(file->buffered_fd));
    return page;
}

// Describes the first file that ends inside a huge page; empty: there is none. Such a file is not mapped: a thread that
// reads its last huge page in a mapping faults, and a mapping for writing makes the file longer.
std::string cut_within_a_huge_page(const FileSet& set, const FileLayout& layout) {
    for (std::size_t i = 0; i < set.files.size(); ++i) {
        const FileHandle& file = *set.files[i];
        const u64 page = os::mapping_page_bytes(file.buffered_fd);
        if (!os::of_huge_pages(file.buffered_fd) || layout.sizes[i] % page == 0) continue;
        return file.name + ": its " + std::to_string(layout.sizes[i]) + " bytes are no whole number of huge pages of " +
               std::to_string(page);
    }
    return {};
}

// Reserves addresses for `bytes`, from a multiple of `page` on; nullptr: there is no room.
std::byte* reserved(u64 bytes, u64 page) {
    void* const memory = ::mmap(nullptr, bytes + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    auto* const from = static_cast<std::byte*>(memory);
    auto* const first = from + (page - reinterpret_cast<std::uintptr_t>(from) % page) % page;
    if (first != from) ::munmap(from, static_cast<u64>(first - from));
    const u64 behind = page - static_cast<u64>(first - from);
    if (behind != 0) ::munmap(first + bytes, behind);
    return first;
}

// Why the GPU is not to map a file at all; empty: it may.
std::string unfit(const FileHandle& file) {
    const std::string kind = os::file_stat(file.buffered_fd, file.name).file_system;
    if (kind == "tmpfs" || kind == "hugetlbfs" || kind == "ramfs") return {};
    return kind + " keeps its data on a disk";
}

std::string why_not(const FileSet& set, const FileLayout& layout, bool emulated) {
    if (emulated) return "the emulated device copies as fast through its service";
    if (layout.bytes == 0) return "the file is empty";
    for (const FileHandle* file : set.files) {
        const std::string cause = unfit(*file);
        if (!cause.empty()) return set.files.size() == 1 ? cause : file->name + ": " + cause;
    }
    return {};
}

int protection_of(const FileSet& set) { return PROT_READ | (set.writable() ? PROT_WRITE : 0); }

std::span<std::byte> map_one(const FileSet& set, u64 bytes, std::string& refusal) {
    void* const memory = ::mmap(nullptr, bytes, protection_of(set), MAP_SHARED, set.files[0]->buffered_fd, 0);
    if (memory != MAP_FAILED) return {static_cast<std::byte*>(memory), bytes};
    refusal = failed_to_map();
    return {};
}

std::span<std::byte> map_stripes(const FileSet& set, const FileLayout& layout, std::string& refusal) {
    const u64 page = page_of_mappings(set), stripe = layout.stripes.stripe_bytes();
    const u64 stripes = (layout.bytes + stripe - 1) / stripe, bytes = (layout.bytes + page - 1) / page * page;
    if (stripe % page != 0) {
        refusal = "stripes of " + std::to_string(stripe) + " bytes are smaller than the " + std::to_string(page) +
                  " of a page of a mapping";
        return {};
    }
    if (stripes > kStripesMax) {
        refusal = "it has " + std::to_string(stripes) + " stripes; at most " + std::to_string(kStripesMax) +
                  " are mapped, so give larger ones";
        return {};
    }
    std::byte* const first = reserved(bytes, page);
    bool good = first != nullptr;
    for (u64 at = 0; good && at < layout.bytes; at += stripe) {
        const FilePlace place = layout.stripes.place(at);
        good = ::mmap(first + at, std::min(stripe, bytes - at), protection_of(set), MAP_SHARED | MAP_FIXED,
                      set.files[place.file]->buffered_fd, static_cast<off_t>(place.offset_bytes)) != MAP_FAILED;
    }
    if (good) return {first, bytes};
    refusal = failed_to_map();
    if (first != nullptr) ::munmap(first, bytes);
    return {};
}

}  // namespace

MappedFiles::MappedFiles(const FileSet& set, const FileLayout& layout, std::string& refusal) {
    const std::string cut = cut_within_a_huge_page(set, layout);
    if (!cut.empty()) refusal = cut;
    else memory_ = set.files.size() == 1 ? map_one(set, layout.bytes, refusal) : map_stripes(set, layout, refusal);
}

MappedFiles::~MappedFiles() {
    if (!memory_.empty()) ::munmap(memory_.data(), memory_.size());
}

FileMapping::FileMapping(Device& device, const FileSet& set, const FileLayout& layout, Devices devices)
    : device_(device), refusal_(why_not(set, layout, devices == Devices::gpus && device.info().emulated)) {
    if (!refusal_.empty()) return;
    MappedFiles mapped(set, layout, refusal_);
    if (mapped.data() == nullptr) return;
    if (device.register_host(mapped.data(), mapped.bytes(), !set.writable(), refusal_)) memory_ = std::move(mapped);
}

FileMapping::~FileMapping() {
    if (memory_.data() != nullptr) device_.unregister_host(memory_.data());
}

}  // namespace penstock::ondevice
