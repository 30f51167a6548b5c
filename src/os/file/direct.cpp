// See direct.hpp. Makes the raw system call statx(STATX_DIOALIGN) with its own constants, because libc headers older
// than the kernel lack them. The probe reads 512 bytes, 4 KiB and 64 KiB from the start of the file.
#include "os/file/direct.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <vector>

#include "os/file/extents.hpp"
#include "os/file/file_stat.hpp"
#include "os/file/move_all.hpp"
#include "penstock/types.hpp"

namespace penstock::os {
namespace {

constexpr unsigned kStatxDirectAlignment = 0x2000;  // STATX_DIOALIGN, Linux 6.1
constexpr std::array<std::uint32_t, 3> kAlignments{512, 4096, 64 * 1024};
constexpr std::size_t kProbeBytesMax = 64 * 1024;

// The kernel's struct statx, with the fields that are read here. Its size is fixed at 256 bytes.
struct Statx {
    std::uint32_t mask;
    unsigned char before[148];
    std::uint32_t memory_alignment;  // stx_dio_mem_align, at 152
    std::uint32_t offset_alignment;  // stx_dio_offset_align, at 156; 0: no direct I/O
    unsigned char after[96];
};
static_assert(sizeof(Statx) == 256 && offsetof(Statx, memory_alignment) == 152);

bool empty_file(int fd) noexcept {
    struct stat status {};
    return ::fstat(fd, &status) == 0 && status.st_size == 0;
}

// A server accepts any alignment and may not answer, and opening a file must not wait for a read.
bool of_a_server(const std::string& file_system) noexcept {
    return file_system == "fuse" || file_system == "nfs" || file_system == "9p";
}

void assume_page_size(const char* why, DirectFacts& facts) {
    const auto page = static_cast<std::uint32_t>(::sysconf(_SC_PAGESIZE));
    facts.usable = true;
    facts.offset_alignment = facts.memory_alignment = page;
    facts.source = "assumed";
    facts.cause = std::string(why) + " and statx has no answer: page size assumed";
}

// Returns whether a read of `length` bytes into `memory` works. On false, errno says why not.
bool reads(System& system, int fd, void* memory, std::size_t length) {
    ssize_t count = -1;
    std::uint32_t retries = 0;
    do {
        count = system.pread(fd, memory, length, 0);
    } while (count < 0 && try_again(errno, retries));
    return count >= 0;
}

// Says what a direct transfer of this file proves, given that the file system accepts it.
void judge_bypass(int fd, const FileStat& file, DirectFacts& facts) {
    const std::string& file_system = file.file_system;
    const CachedBy cache = file.cached_by;
    const bool overlay = file_system == "overlay";
    if (facts.source == "statx" && (cache == CachedBy::page_cache || overlay)) {
        facts.bypass = Bypass::promised;
    } else if (cache == CachedBy::page_cache || (overlay && tells_extents(fd))) {
        facts.bypass = Bypass::shown;
        if ((overlay || file_system == "btrfs") && !written_in_place(fd)) {
            facts.write_unknown_cause = "btrfs writes data with checksums through the page cache (since Linux 6.15), "
                                        "and then drops the pages";
        }
    } else if (overlay) {
        facts.usable = false;
        facts.cause = "the file system below the overlay reports neither an alignment nor a place on a disk, so its "
                      "files may be in memory";
    } else if (cache == CachedBy::itself) {
        facts.unknown_cause = file_system + " has its own cache, which cannot be seen";
    } else if (file_system == "fuse" || file_system == "9p") {
        facts.unknown_cause = "a server moves the bytes of " + file_system + " through caches that cannot be seen";
    } else {
        facts.unknown_cause = "the caches of the file system " + file_system + " are unknown";
    }
}

}  // namespace

bool ask_statx(int fd, DirectFacts& facts) {
    Statx status{};
    if (::syscall(SYS_statx, fd, "", AT_EMPTY_PATH, kStatxDirectAlignment, &status) != 0) return false;
    if ((status.mask & kStatxDirectAlignment) == 0) return false;
    facts.source = "statx";
    facts.usable = status.offset_alignment != 0;
    facts.offset_alignment = status.offset_alignment;
    facts.memory_alignment = status.memory_alignment;
    if (!facts.usable) facts.cause = "the file system does not support direct I/O on this file";
    return true;
}

void probe_direct(System& system, int fd, DirectFacts& facts) {
    facts.source = "probe";
    std::vector<std::byte> room(4 * kProbeBytesMax);
    const auto address = reinterpret_cast<std::uintptr_t>(room.data());
    std::byte* block = room.data() + (align_up(address, kProbeBytesMax) - address);
    for (const std::uint32_t alignment : kAlignments) {
        if (!reads(system, fd, block, alignment)) continue;
        facts.offset_alignment = alignment;
        break;
    }
    if (facts.offset_alignment == 0) {
        facts.cause = std::string("the file opens with O_DIRECT but a direct read fails: ") + std::strerror(errno);
        return;
    }
    facts.memory_alignment = static_cast<std::uint32_t>(kProbeBytesMax);
    for (const std::uint32_t alignment : kAlignments) {
        // kProbeBytesMax + alignment is a multiple of `alignment` and of nothing larger among the candidates.
        if (!reads(system, fd, block + kProbeBytesMax + alignment % kProbeBytesMax, facts.offset_alignment)) continue;
        facts.memory_alignment = alignment;
        break;
    }
    facts.usable = true;
}

DirectFile open_direct(System& system, int fd) {
    FileStat facts;
    facts.cached_by = cached_by(fd, facts.file_system);
    return open_direct(system, fd, facts);
}

DirectFile open_direct(System& system, int fd, const FileStat& facts) {
    DirectFile file;
    if (facts.cached_by == CachedBy::memory) {
        file.facts.source = "file system";
        file.facts.cause = "files of " + facts.file_system + " lie in memory: no storage lies beyond the page cache";
        return file;
    }
    const int flags = ::fcntl(fd, F_GETFL);
    const std::string self = "/proc/self/fd/" + std::to_string(fd);
    file.fd = UniqueFd(system.open(self.c_str(), (flags & O_ACCMODE) | O_DIRECT | O_CLOEXEC, 0), system);
    if (!file.fd) {
        file.refusal = errno;
        file.facts.source = "probe";
        file.facts.cause = std::string("open with O_DIRECT: ") + std::strerror(file.refusal);
        return file;
    }
    if (!ask_statx(file.fd.get(), file.facts)) {
        if (empty_file(file.fd.get())) {
            assume_page_size("the file is empty", file.facts);
        } else if (of_a_server(facts.file_system)) {
            assume_page_size("a server has the file", file.facts);
        } else {
            probe_direct(system, file.fd.get(), file.facts);
        }
    }
    if (file.facts.usable) judge_bypass(file.fd.get(), facts, file.facts);
    if (!file.facts.usable) file.fd.reset();
    return file;
}

}  // namespace penstock::os
