// Many rows of one dataset, read by small reads on the calling thread.
//
// Rows in the page cache cost a system call and a copy each: a plan and a queue would cost more. Short rows that lie
// close together cost one call for all, through scratch that stays in the cache of the core. Rows that make the thread
// wait come from a disk, which is faster when it is asked for many at a time, so reading gives up then. What must stay
// true: who asked starts a transfer where false is returned, and nothing has happened then that counts.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "data/layout/row_runs.hpp"
#include "python/core/small/tally.hpp"

namespace penstock::python {

// The rows that an index names: a list of integers, or an array of NumPy with integers or a mask. False: another index,
// one that names none, or one that is wrong. Requires: the GIL.
bool ask_rows(nb::handle index, std::int64_t extent, std::vector<std::int64_t>& numbers);

// How many bytes all rows have; nothing where the number is none.
std::optional<std::uint64_t> bytes_of_rows(const data::Layout& layout, const data::WantedRows& rows);

struct RowsInto {
    MemoryView memory;
    RowsRead& done;
};

// Requires: rows of the dataset, and memory of just their bytes that the host reaches. Throws as File::try_small_reads.
bool read_rows(const File& file, const data::Layout& layout, const data::WantedRows& rows, const RowsInto& into);

// The same for runs of any length, as long as there are few: a box of elements.
bool read_runs(const File& file, std::span<const data::FileRun> runs, const RowsInto& into);

// Bytes of one request that the calling thread reads by itself. More are worth several threads.
inline constexpr std::uint64_t kMostHere = 4 * kMiB;

}  // namespace penstock::python
