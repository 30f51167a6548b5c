// See residency.hpp. Each call tries cachestat and then mincore, because a failed system call costs less than a
// remembered answer that may be out of date.
#include "os/file/residency.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "os/file/file_stat.hpp"
#include "os/limits.hpp"
#include "penstock/error.hpp"

namespace penstock::os {
namespace {

constexpr std::uint64_t kExactBytes = 64 * kMiB;
constexpr std::uint64_t kSampleBytes = kMiB;
constexpr std::uint64_t kWindows = 64;
constexpr std::uint64_t kFarBeyond = 4 * kGiB;  // larger than any page, so that no page of the file reaches there

struct CachestatRange {
    std::uint64_t offset, length;
};
struct Cachestat {
    std::uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

std::uint64_t page_bytes() noexcept { return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)); }

struct Sample {
    std::uint64_t offset, bytes;
};

std::uint64_t pages_of(const Sample& sample) noexcept {
    const std::uint64_t page = page_bytes();
    return (align_up(sample.offset + sample.bytes, page) - align_down(sample.offset, page)) / page;
}

bool by_cachestat(int fd, const Sample& sample, ResidencyWindow& window) noexcept {
    const CachestatRange range{sample.offset, sample.bytes};
    Cachestat found{};
    if (::syscall(kCachestat, fd, &range, &found, 0u) != 0) return false;
    window.resident_pages = found.cached;
    window.dirty_pages = found.dirty;
    return true;
}

// Finds which pages of a mapping are resident. On false, errno says why it could not.
bool ask_mincore(int fd, std::uint64_t start, std::uint64_t length, std::vector<unsigned char>& pages) {
    void* mapping = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(start));
    if (mapping == MAP_FAILED) return false;
    pages.resize((length + page_bytes() - 1) / page_bytes());
    const bool answered = ::mincore(mapping, length, pages.data()) == 0;
    const int error = errno;
    ::munmap(mapping, length);
    errno = error;
    return answered;
}

// Returns whether mincore describes this file to the caller. If the caller has no right to know, mincore says
// "resident" of all pages, even of pages beyond the file. This relies on the kernel's own rule, so it holds with user
// namespaces, capabilities and overlays.
bool mincore_tells(int fd) {
    if (of_huge_pages(fd)) {  // mincore describes the pages of the mapping, and a new mapping has none
        errno = EOPNOTSUPP;
        return false;
    }
    struct stat status {};
    if (::fstat(fd, &status) != 0) return false;
    const auto size = static_cast<std::uint64_t>(status.st_size);
    std::vector<unsigned char> page;
    if (!ask_mincore(fd, align_down(size, page_bytes()) + kFarBeyond, page_bytes(), page)) return false;
    if ((page.front() & 1) == 0) return true;
    errno = EPERM;
    return false;
}

bool by_mincore(int fd, const Sample& sample, ResidencyWindow& window) {
    const std::uint64_t start = align_down(sample.offset, page_bytes());
    std::vector<unsigned char> pages;
    if (!ask_mincore(fd, start, sample.offset + sample.bytes - start, pages)) return false;
    window.resident_pages = static_cast<std::uint64_t>(
        std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) != 0; }));
    return true;
}

bool ask(int fd, ResidencySource source, ResidencyWindow& window) {
    Sample sample{window.offset_bytes, std::min(window.bytes, kSampleBytes)};
    sample.offset += align_down((window.bytes - sample.bytes) / 2, page_bytes());
    window.sampled_pages = pages_of(sample);
    return source == ResidencySource::mincore ? by_mincore(fd, sample, window) : by_cachestat(fd, sample, window);
}

std::vector<ResidencyWindow> cut(int fd, std::uint64_t offset, std::uint64_t bytes) {
    struct stat status {};
    if (::fstat(fd, &status) != 0) throw Error(errno_info("residency", {}, errno));
    const auto size = static_cast<std::uint64_t>(status.st_size);
    if (offset >= size) return {};
    const std::uint64_t end = offset + std::min(bytes, size - offset);
    const std::uint64_t step =
        end - offset <= kExactBytes ? kSampleBytes : align_up((end - offset + kWindows - 1) / kWindows, page_bytes());
    std::vector<ResidencyWindow> windows;
    for (std::uint64_t at = offset; at < end;) {
        const std::uint64_t next = std::min(end, align_down(at, page_bytes()) + step);
        windows.push_back({.offset_bytes = at, .bytes = next - at});
        at = next;
    }
    return windows;
}

bool ask_all(int fd, ResidencySource source, std::vector<ResidencyWindow>& windows) {
    if (source == ResidencySource::mincore && !windows.empty() && !mincore_tells(fd)) return false;
    for (ResidencyWindow& window : windows) {
        if (!ask(fd, source, window)) return false;
    }
    return true;
}

[[noreturn]] void fail(const char* operation, int error) {
    ErrorInfo info = errno_info(operation, {}, error);
    if (error == EPERM) {
        info.cause = "the kernel tells which pages of a file are in the page cache only to its owner and to those who "
                     "may write it";
        info.advice = "ask as the file's owner, or get write permission";
    }
    throw Error(std::move(info));
}

}  // namespace

std::vector<ResidencyWindow> residency_windows(int fd, const FileBytes& range, std::string& used,
                                               ResidencySource source) {
    const CachedBy cache = source == ResidencySource::automatic ? cached_by(fd) : CachedBy::page_cache;
    if (cache == CachedBy::itself) {
        throw Error(ErrorCode::unsupported, "residency", "the file system has its own cache, which cannot be seen");
    }
    std::vector<ResidencyWindow> windows = cut(fd, range.offset_bytes, range.bytes);
    if (source != ResidencySource::mincore && cache != CachedBy::others) {
        used = "cachestat";
        if (ask_all(fd, ResidencySource::cachestat, windows)) return windows;
        if (source == ResidencySource::cachestat) fail("residency by cachestat", errno);
        for (ResidencyWindow& window : windows) window.resident_pages = 0, window.dirty_pages.reset();
    }
    if (cache == CachedBy::memory && of_huge_pages(fd)) {
        used = "hugetlbfs";
        for (ResidencyWindow& window : windows)
            window.resident_pages = window.sampled_pages = pages_of({window.offset_bytes, window.bytes});
        return windows;
    }
    used = "mincore";
    if (!ask_all(fd, ResidencySource::mincore, windows)) fail("residency by mincore", errno);
    return windows;
}

void add(Residency& sum, const Residency& part) {
    const bool first = sum.sampled_pages == 0;
    if (part.sampled_pages != 0) {
        if (first) sum.dirty_pages = part.dirty_pages;
        else if (sum.dirty_pages && part.dirty_pages) *sum.dirty_pages += *part.dirty_pages;
        else sum.dirty_pages.reset();
    }
    sum.pages += part.pages;
    sum.sampled_pages += part.sampled_pages;
    sum.resident_pages += part.resident_pages;
}

void add(Residency& sum, const ResidencyWindow& window) {
    add(sum, Residency{0, window.sampled_pages, window.resident_pages, window.dirty_pages, {}});
}

Residency residency(int fd, std::uint64_t offset_bytes, std::uint64_t bytes, ResidencySource source) {
    Residency sum;
    const auto windows = residency_windows(fd, {offset_bytes, bytes}, sum.source, source);
    for (const ResidencyWindow& window : windows) {
        add(sum, window);
        sum.pages += pages_of({window.offset_bytes, window.bytes});
    }
    return sum;
}

std::optional<double> cached_fraction(int fd, std::uint64_t offset_bytes, std::uint64_t bytes) noexcept {
    ResidencyWindow window;
    const Sample range{offset_bytes, bytes};
    if (!by_cachestat(fd, range, window)) return std::nullopt;
    window.sampled_pages = pages_of(range);
    return window.resident_fraction();
}

void drop_cache(System& system, int fd, const std::string& name, const FileBytes& range) {
    const auto fail = [&](const char* operation, int error) {
        ErrorInfo info = errno_info(operation, name, error);
        info.offset_bytes = range.offset_bytes;
        info.length_bytes = range.bytes;
        throw Error(std::move(info));
    };
    while (system.fdatasync(fd) != 0) {
        if (errno != EINTR) fail("drop cache: fdatasync", errno);
    }
    const int error = ::posix_fadvise(fd, static_cast<off_t>(range.offset_bytes), static_cast<off_t>(range.bytes),
                                      POSIX_FADV_DONTNEED);
    if (error != 0) fail("drop cache: posix_fadvise", error);
}

}  // namespace penstock::os
