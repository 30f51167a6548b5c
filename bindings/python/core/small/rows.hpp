// Rows of a dataset that an index of Python names, and reading them by small reads (see data/rows/run_reads.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "data/layout/row_runs.hpp"
#include "data/rows/run_reads.hpp"
#include "python/core/small/tally.hpp"

namespace penstock::python {

// How a dataset is stored, as Python's described() tells. `chunks`: a table of int64, a row a chunk: its number in the
// grid, and where it begins; or where the only one does.
data::Stored stored_of(const nb::dict& stored);

// The rows that an index names: a list of integers, or an array of NumPy with integers or a mask, alone or in a tuple.
// False: another index, one that names none, or one that is wrong. Requires: the GIL.
bool ask_rows(nb::handle index, std::int64_t extent, std::vector<std::int64_t>& numbers);

// How many bytes all rows have; nothing where the number is none.
std::optional<std::uint64_t> bytes_of_rows(const data::Layout& layout, const data::WantedRows& rows);

// Requires: rows of the dataset, and memory of just their bytes. False: a transfer must be made,
// and nothing has happened that counts. Throws as File::try_small_reads.
bool read_rows(const File& file, const data::Layout& layout, const data::WantedRows& rows, const data::RunsInto& into);

}  // namespace penstock::python
