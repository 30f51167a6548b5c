// See kernel.hpp.
#include "preload/ask/kernel.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace preload::kernel {
namespace {

constexpr long kCachestatCall = 451;
constexpr std::int64_t kPage = 4096;  // cachestat counts pages; a larger page only lowers the share, towards "cold"
constexpr std::int64_t kLeastCallBytes = 128 * 1024;  // that one call reads ahead: the kernel's usual window
constexpr long kEnoughAheadKib = 1024;  // decision 0047: from here on asking early gains nothing

class SavedErrno {
public:
    SavedErrno() : saved_(errno) {}
    ~SavedErrno() { errno = saved_; }
    SavedErrno(const SavedErrno&) = delete;
    SavedErrno& operator=(const SavedErrno&) = delete;

private:
    int saved_;
};

bool lies_in_memory(int fd) {
    struct statfs found {};
    if (::syscall(SYS_fstatfs, fd, &found) != 0) return false;
    const auto type = static_cast<std::uint64_t>(found.f_type);
    return type == 0x01021994 || type == 0x858458f6 || type == 0x958458f6;  // tmpfs, ramfs, hugetlbfs
}

// The kernel's own window, of the device behind the file; below 0: not told.
long window_kib(std::uint64_t device) {
    char name[64];
    std::snprintf(name, sizeof name, "/sys/class/bdi/%u:%u/read_ahead_kb", major(device), minor(device));
    const int fd = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC));
    if (fd < 0) return -1;
    char text[32] = {};
    const long got = ::syscall(SYS_read, fd, text, sizeof text - 1);
    ::syscall(SYS_close, fd);
    return got > 0 ? std::strtol(text, nullptr, 10) : -1;
}

// When the file was made: another one may get the number of one that was removed. 0: the file system does not say.
std::int64_t born_ns(int fd) {
    struct statx found {};
    if (::syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_BTIME, &found) != 0) return 0;
    if ((found.stx_mask & STATX_BTIME) == 0) return 0;
    return found.stx_btime.tv_sec * 1'000'000'000LL + found.stx_btime.tv_nsec;
}

// How much of a span is in the page cache, or on its way there; below 0: not told.
std::int64_t cached_bytes(int fd, Span span) {
    const std::uint64_t range[2] = {static_cast<std::uint64_t>(span.offset), static_cast<std::uint64_t>(span.bytes)};
    std::uint64_t found[5] = {};
    if (::syscall(kCachestatCall, fd, range, found, 0u) != 0) return -1;
    return static_cast<std::int64_t>(found[0]) * kPage;
}

// A byte that is read only if no storage has to be asked.
int byte_is_cached(int fd, std::int64_t offset) {
    char byte;
    iovec piece{&byte, 1};
    const long got = ::syscall(SYS_preadv2, fd, &piece, 1, offset, 0, RWF_NOWAIT);
    if (got >= 0) return 1;
    return errno == EAGAIN ? 0 : -1;
}

}  // namespace

const char* words(Why why) {
    switch (why) {
        case Why::none: return "asked for";
        case Why::small: return "too little moved in order";
        case Why::not_regular: return "no regular file";
        case Why::in_memory: return "the file lies in memory";
        case Why::unlinked: return "the file has no name any more";
        case Why::synchronous: return "opened with O_DIRECT or O_SYNC";
        case Why::kernel_reads_ahead: return "the kernel reads ahead far enough by itself";
        case Why::no_residency: return "the system does not tell what the page cache holds";
        case Why::no_thread: return "the system gave no thread";
    }
    return "";
}

bool stat(int fd, FileFacts& facts) {
    const SavedErrno saved;
    struct stat found {};
    if (::fstat(fd, &found) != 0) return false;
    const long flags = ::syscall(SYS_fcntl, fd, F_GETFL);
    const bool regular = S_ISREG(found.st_mode);
    const std::int64_t born = regular ? born_ns(fd) : 0;
    facts = {found.st_dev, found.st_ino, born, found.st_size, regular, static_cast<int>(flags)};
    return flags >= 0;
}

bool writes(const FileFacts& facts) { return (facts.flags & O_ACCMODE) != O_RDONLY; }

bool is_open(int fd) {
    const SavedErrno saved;
    return ::syscall(SYS_fcntl, fd, F_GETFD) >= 0;
}

int most_numbers() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > 1 << 30) return 1 << 30;
    return static_cast<int>(limit.rlim_cur);
}

std::int64_t position(int fd) {
    const SavedErrno saved;
    return ::syscall(SYS_lseek, fd, 0L, SEEK_CUR);
}

std::int64_t advance(int fd, std::int64_t bytes) {
    const SavedErrno saved;
    const std::int64_t place = ::syscall(SYS_lseek, fd, bytes, SEEK_CUR);
    return place < 0 ? place : place - bytes;
}

Why unsuited(int fd, Direction direction) {
    const SavedErrno saved;
    struct stat found {};
    if (::fstat(fd, &found) != 0 || !S_ISREG(found.st_mode)) return Why::not_regular;
    const long flags = ::syscall(SYS_fcntl, fd, F_GETFL);
    if (flags < 0 || (flags & (O_DIRECT | O_SYNC | O_DSYNC)) != 0) return Why::synchronous;
    if (lies_in_memory(fd)) return Why::in_memory;
    if (direction == Direction::write) return found.st_nlink == 0 ? Why::unlinked : Why::none;
    if (window_kib(found.st_dev) >= kEnoughAheadKib) return Why::kernel_reads_ahead;
    return is_cached(fd, {0, 1}) < 0 ? Why::no_residency : Why::none;
}

int is_cached(int fd, Span span) {
    const SavedErrno saved;
    const std::int64_t told = cached_bytes(fd, span);
    if (told >= 0) return told * 10 >= span.bytes * 9 ? 1 : 0;
    const int first = byte_is_cached(fd, span.offset);
    return first <= 0 ? first : byte_is_cached(fd, span.end() - 1);
}

void start_writeback(int fd, Span span) {
    const SavedErrno saved;
    ::syscall(SYS_sync_file_range, fd, span.offset, span.bytes, SYNC_FILE_RANGE_WRITE);
}

void read_ahead(int fd, Span span) {
    const SavedErrno saved;
    // One call reads no more than the device takes in one request, or than the kernel's window where that is larger.
    while (!span.empty()) {
        if (::syscall(SYS_readahead, fd, span.offset, static_cast<std::size_t>(span.bytes)) != 0) return;
        const std::int64_t told = cached_bytes(fd, span);
        const std::int64_t taken = std::min(told < 0 ? kLeastCallBytes : told, span.bytes);
        if (taken == 0) return;  // no memory for it
        span = {span.offset + taken, span.bytes - taken};
    }
}

int flush(int fd) {
    const SavedErrno saved;
    while (::syscall(SYS_fsync, fd) != 0) {
        if (errno != EINTR) return errno;
    }
    return 0;
}

int process() {
    const SavedErrno saved;
    return static_cast<int>(::syscall(SYS_getpid));
}

int thread() {
    const SavedErrno saved;
    return static_cast<int>(::syscall(SYS_gettid));
}

bool has_thread(int number) {
    const SavedErrno saved;
    return ::syscall(SYS_tgkill, ::syscall(SYS_getpid), number, 0) == 0;
}

void rest() {
    const SavedErrno saved;
    const timespec moment{0, 50'000};
    ::syscall(SYS_nanosleep, &moment, nullptr);
}

bool write_file(const char* name, const char* text, std::uint64_t bytes) {
    const SavedErrno saved;
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
    const int fd = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, name, flags, 0666));
    if (fd < 0) return false;
    while (bytes > 0) {
        const long wrote = ::syscall(SYS_write, fd, text, bytes);
        if (wrote <= 0) break;
        text += wrote;
        bytes -= static_cast<std::uint64_t>(wrote);
    }
    if (::syscall(SYS_close, fd) == 0 && bytes == 0) return true;
    ::syscall(SYS_unlinkat, AT_FDCWD, name, 0);  // none is better than a part
    return false;
}

void wait(const std::uint32_t* word, std::uint32_t seen) {
    const SavedErrno saved;
    const timespec most{1, 0};
    ::syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, &most, nullptr, 0);
}

bool main_thread_is_gone() {
    const SavedErrno saved;
    const int fd = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, "/proc/self/stat", O_RDONLY | O_CLOEXEC));
    if (fd < 0) return false;
    char text[256] = {};
    const long got = ::syscall(SYS_read, fd, text, sizeof text - 1);
    ::syscall(SYS_close, fd);
    const char* const behind_name = got > 0 ? std::strrchr(text, ')') : nullptr;
    return behind_name != nullptr && behind_name[1] == ' ' && behind_name[2] == 'Z';
}

void wake(const std::uint32_t* word, int waiters) {
    const SavedErrno saved;
    ::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, waiters, nullptr, nullptr, 0);
}

}  // namespace preload::kernel
