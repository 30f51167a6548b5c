// statx(STATX_DIOALIGN) by raw system call with our own constants, because libc headers older than the kernel lack
// them; else a probe that reads from the start of the file at 512 bytes, 4 KiB and 64 KiB.
#include "os/direct.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <vector>

#include "penstock/types.hpp"

namespace penstock::os {
namespace {

constexpr unsigned kStatxDirectAlignment = 0x2000;  // STATX_DIOALIGN, Linux 6.1
constexpr std::array<std::uint32_t, 3> kAlignments{512, 4096, 64 * 1024};
constexpr std::size_t kLargest = 64 * 1024;

// The kernel's struct statx, as far as we read it; its size is fixed at 256 bytes.
struct Statx {
    std::uint32_t mask;
    unsigned char before[148];
    std::uint32_t memory_alignment;  // stx_dio_mem_align, at 152
    std::uint32_t offset_alignment;  // stx_dio_offset_align, at 156; 0: refused
    unsigned char after[96];
};
static_assert(sizeof(Statx) == 256 && offsetof(Statx, memory_alignment) == 152);

bool empty_file(int fd) noexcept {
    struct stat status {};
    return ::fstat(fd, &status) == 0 && status.st_size == 0;
}

// True when a read of `length` bytes into `memory` works; errno kept otherwise.
bool reads(System& system, int fd, void* memory, std::size_t length) {
    ssize_t count = -1;
    do {
        count = system.pread(fd, memory, length, 0);
    } while (count < 0 && errno == EINTR);
    return count >= 0;
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
    if (!facts.usable) facts.cause = "the file system says that this file takes no direct I/O";
    return true;
}

void probe_direct(System& system, int fd, DirectFacts& facts) {
    facts.source = "probe";
    std::vector<std::byte> room(4 * kLargest);
    const auto address = reinterpret_cast<std::uintptr_t>(room.data());
    std::byte* block = room.data() + (align_up(address, kLargest) - address);
    for (const std::uint32_t alignment : kAlignments) {
        if (!reads(system, fd, block, alignment)) continue;
        facts.offset_alignment = alignment;
        break;
    }
    if (facts.offset_alignment == 0) {
        facts.cause = std::string("the file opens with O_DIRECT but a direct read fails: ") + std::strerror(errno);
        return;
    }
    facts.memory_alignment = static_cast<std::uint32_t>(kLargest);
    for (const std::uint32_t alignment : kAlignments) {
        // kLargest + alignment is a multiple of `alignment` and of nothing larger among the candidates.
        if (!reads(system, fd, block + kLargest + alignment % kLargest, facts.offset_alignment)) continue;
        facts.memory_alignment = alignment;
        break;
    }
    facts.usable = true;
}

DirectFile open_direct(System& system, int fd) {
    DirectFile file;
    const int flags = ::fcntl(fd, F_GETFL);
    const std::string self = "/proc/self/fd/" + std::to_string(fd);
    file.fd = UniqueFd(system.open(self.c_str(), (flags & O_ACCMODE) | O_DIRECT | O_CLOEXEC, 0), system);
    if (!file.fd) {
        file.facts.source = "probe";
        file.facts.cause = std::string("open with O_DIRECT: ") + std::strerror(errno);
        return file;
    }
    if (!ask_statx(file.fd.get(), file.facts)) {
        if (empty_file(file.fd.get())) {
            const auto page = static_cast<std::uint32_t>(::sysconf(_SC_PAGESIZE));
            file.facts = {true, page, page, "assumed", "the file is empty and statx has no answer: page size assumed"};
        } else {
            probe_direct(system, file.fd.get(), file.facts);
        }
    }
    if (!file.facts.usable) file.fd.reset();
    return file;
}

}  // namespace penstock::os
