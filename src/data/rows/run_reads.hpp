// Many runs of one file, read by small reads: on the calling thread, or, where there are many, on all cores.
//
// Runs in the page cache cost a system call and a copy each: a plan and a queue would cost more. Short runs that lie
// close together cost one call for all, through scratch that stays in the cache of the core. Memory of a GPU gets them
// in pieces of pinned memory, of which one is copied while the next is filled. Runs that make a thread
// wait come from a disk, which is faster when it is asked for many at a time, so reading gives up then. What must stay
// true: where false is returned, nothing has happened that counts; bytes and counts do not depend on how many threads
// read; after the return no thread reads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>

#include "data/layout/layout.hpp"
#include "data/layout/row_runs.hpp"
#include "os/threads/crew.hpp"
#include "penstock/context.hpp"

namespace penstock::data {

// What one read, or write, of many runs did.
struct RunsMoved {
    static constexpr std::size_t kMostSamples = 64;
    std::uint64_t requested_bytes = 0;
    std::uint64_t operations = 0, bytes = 0, host_copies_bytes = 0;
    std::uint64_t staged_bytes = 0, scratch_peak_bytes = 0;
    long waits = 0;  // in reads to memory that the host reaches (see SmallReads)
    double seconds = 0;
    std::map<std::uint64_t, SmallRead> samples{};  // one of each size
};

void add_reads(const RunsMoved& part, RunsMoved& sum);

struct RunsInto {
    MemoryView memory;
    RunsMoved& done;
    unsigned threads = 0;  // the calling one included; 0: one for each CPU of this process
    os::Crew* crew = nullptr;  // as CoreOptions::crew
};

// Bytes of a box, or of a whole file, that are read in this way wherever they are. More of what a disk has are worth a
// queue. Rows are not bound by it.
inline constexpr std::uint64_t kMostHere = 4 * kMiB;
// The same where the page cache has them: a second at most in which the caller hears no Ctrl-C.
inline constexpr std::uint64_t kMostCached = 1024 * kMiB;

// Runs up to this length are moved with their neighbours by one call.
inline constexpr std::uint64_t kShortRun = 4 * kKiB;
// Of one row; more are worth a queue.
inline constexpr std::size_t kRunsOfRow = 8;

// Whether the runs are to be in the order of the memory (see RowLimits).
bool fills_in_order(const MemoryView& memory) noexcept;

// Requires: memory in which the runs end, and which no two runs share. False: a transfer has to read them, or to say
// why it cannot. Throws as File::try_small_reads.
bool read_runs(const File& file, std::span<const FileRun> runs, const RunsInto& into);
// The same by a function that reads as File::try_small_reads; several threads may call it.
using ReadRanges = std::function<std::optional<SmallReads>(const MemoryView&, std::span<const Range>)>;
bool read_runs(const ReadRanges& read, std::span<const FileRun> runs, const RunsInto& into);

// Runs of a box, or of a whole file, in the order of the memory, which the host reaches: up to kMostHere as read_runs,
// and more, up to kMostCached, where the page cache has them all. The last bytes are asked for first: of a file that is
// not all there the end is missing, or else the begin.
bool read_box(const File& file, std::span<const FileRun> runs, const RunsInto& into);
// `cached` reads as File::try_cached_reads.
bool read_box(const std::pair<ReadRanges, ReadRanges>& read_and_cached, std::span<const FileRun> runs,
              const RunsInto& into);

// Rows into memory of exactly their bytes, one after the other. Each thread finds the runs of those that it reads. A
// row that is named again is copied, or read again.
// Requires: as find_rows. False: a transfer has to read them. Throws as File::try_small_reads.
bool read_rows(const ReadRanges& read, const Layout& layout, const WantedRows& rows, const RunsInto& into);

}  // namespace penstock::data
