// How much of a file is in the page cache, and how to drop it from there.
//
// cachestat (Linux 6.5) reports resident and dirty pages without a mapping. A mapping with mincore reports resident
// pages only. Neither is used where it does not describe the file's bytes. cachestat looks at the descriptor's own
// pages, but a file of an overlay has none, while its mapping is that of the lower file. mincore says "resident" of
// every page if the caller neither owns the file nor may write it. So it is first asked about a page far beyond the
// end. Ranges up to 64 MiB are counted exactly. Larger ones are split into 64 windows of equal size, and 1 MiB in the
// middle of each is counted. So the cost is bounded, and the windows show which parts are cached.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "os/system.hpp"
#include "penstock/evidence.hpp"

namespace penstock::os {

struct FileBytes {
    std::uint64_t offset_bytes = 0;
    std::uint64_t bytes = 0;
};

enum class ResidencySource : std::uint8_t { automatic, cachestat, mincore };

// One of the contiguous windows that cover a range. `bytes` is the window's length. The pages count its sampled part
// only.
struct ResidencyWindow {
    std::uint64_t offset_bytes = 0;
    std::uint64_t bytes = 0;
    std::uint64_t sampled_pages = 0;
    std::uint64_t resident_pages = 0;
    std::optional<std::uint64_t> dirty_pages{};  // only cachestat reports these
    double resident_fraction() const noexcept {
        return sampled_pages == 0 ? 0.0 : static_cast<double>(resident_pages) / static_cast<double>(sampled_pages);
    }
};

// Ranges end at the end of the file at the latest. residency and residency_windows throw Error if the answer cannot be
// known: for a pipe, for a file that the caller neither owns nor may write, and for a file system with its own cache.
Residency residency(int fd, std::uint64_t offset_bytes, std::uint64_t bytes,
                    ResidencySource source = ResidencySource::automatic);
// Returns the windows in file order, covering the range without gaps. Sets `used` to "cachestat", "mincore", or
// "hugetlbfs". The files of hugetlbfs are always in memory, and neither call describes them.
std::vector<ResidencyWindow> residency_windows(int fd, const FileBytes& range, std::string& used,
                                               ResidencySource source = ResidencySource::automatic);

// Adds to a sum. The sum's dirty pages are known if those of all its parts are.
void add(Residency& sum, const Residency& part);
void add(Residency& sum, const ResidencyWindow& window);  // adds all but the number of pages in the window

// Returns the share of a short range's pages that are in the page cache, 0 to 1, by one system call. Returns nothing
// without cachestat. Requires: the file is CachedBy::page_cache or CachedBy::memory.
std::optional<double> cached_fraction(int fd, std::uint64_t offset_bytes, std::uint64_t bytes) noexcept;

// Calls fdatasync, then fadvise(DONTNEED). Whole pages of the range leave the cache unless they are mapped, locked or
// on tmpfs. bytes == 0: up to the end of the file. Throws Error with `name`.
void drop_cache(System& system, int fd, const std::string& name, const FileBytes& range = {});

}  // namespace penstock::os
