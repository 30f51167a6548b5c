// Rows of a dataset, written to the page cache by small writes of the calling thread.
//
// The kernel lets one thread at a time write to a file, so more threads would only wait for each other. Short rows that
// follow each other in the file, but not in memory, are gathered in scratch that stays in the cache of the core: one
// call writes them. A part of a page that is not in the page cache is read first, for which the thread waits; a queue
// does that faster, so writing gives up then. What must stay true: where false is returned, some rows may be written,
// and the caller writes all of them in another way.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "data/rows/run_reads.hpp"

namespace penstock::data {

// Writes as File::try_small_writes.
using WriteRanges = std::function<std::optional<SmallWrites>(const MemoryView&, std::span<const Range>)>;

// Rows of one call, in which the caller hears no Ctrl-C: half a second where each takes a call of the system.
inline constexpr std::size_t kMostRowsHere = 128 * 1024;

struct RunsFrom {
    MemoryView memory;
    RunsMoved& done;
};

// Rows out of memory of the host that has exactly their bytes, one after the other.
// Requires: as find_rows. False: a transfer has to write them, or to say why it cannot; it does that of rows that are
// named twice, too. Throws as File::try_small_writes.
bool write_rows(const WriteRanges& write, const Layout& layout, const WantedRows& rows, const RunsFrom& from);

}  // namespace penstock::data
