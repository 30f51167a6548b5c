// How much of a file is in the page cache, and dropping it from there.
//
// cachestat (Linux 6.5) tells resident and dirty pages without a mapping; a mapping and mincore tell resident pages
// only. Neither is believed where it does not speak of the file's bytes: cachestat looks at the descriptor's own pages,
// and a file of an overlay has none, while its mapping is the lower file's. mincore says "resident" of every page to a
// caller that neither owns the file nor may write it, so it is first asked of a page far beyond the end. Ranges up to
// 64 MiB are counted exactly; larger ones are split into 64 windows of equal size and 1 MiB in the middle of each is
// asked, so the cost has a bound and the windows show where the hot parts are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "os/system.hpp"
#include "penstock/evidence.hpp"

namespace penstock::os {

enum class ResidencySource : std::uint8_t { automatic, cachestat, mincore };

// One of the contiguous windows that cover a range. `bytes` is the window, the page counts are of what was asked in it.
struct ResidencyWindow {
    std::uint64_t offset_bytes = 0;
    std::uint64_t bytes = 0;
    std::uint64_t sampled_pages = 0;
    std::uint64_t resident_pages = 0;
    std::optional<std::uint64_t> dirty_pages{};  // only cachestat tells
    double resident_fraction() const noexcept {
        return sampled_pages == 0 ? 0.0 : static_cast<double>(resident_pages) / static_cast<double>(sampled_pages);
    }
};

// Ranges are cut at the end of the file. Both throw Error where it cannot be known: of a pipe, of a file that the
// caller neither owns nor may write, of a file system with a cache of its own.
Residency residency(int fd, std::uint64_t offset_bytes, std::uint64_t bytes,
                    ResidencySource source = ResidencySource::automatic);
// Windows in file order, covering the range without gaps. Fills `used` with "cachestat" or "mincore", or
// with "hugetlbfs", whose files are in memory whole and of which neither call tells.
std::vector<ResidencyWindow> residency_windows(int fd, std::uint64_t offset_bytes, std::uint64_t bytes,
                                               std::string& used, ResidencySource source = ResidencySource::automatic);

// Sums what windows and ranges tell. Dirty pages of a sum are known where those of all its parts are.
void add(Residency& sum, const Residency& part);
void add(Residency& sum, const ResidencyWindow& window);  // all but the pages of the whole window

// How much of a short range's pages are in the page cache, 0 to 1, by one system call. Nothing without cachestat. Only
// for files that are CachedBy::page_cache or memory.
std::optional<double> cached_fraction(int fd, std::uint64_t offset_bytes, std::uint64_t bytes) noexcept;

// fdatasync, then fadvise(DONTNEED): whole pages of the range leave the cache unless mapped, locked or on tmpfs.
// bytes == 0: to the end of the file. Throws Error naming `name`.
void drop_cache(System& system, int fd, const std::string& name, std::uint64_t offset_bytes = 0,
                std::uint64_t bytes = 0);

}  // namespace penstock::os
