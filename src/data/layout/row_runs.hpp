// Where the bytes of many rows lie: boxes of one shape, which begin at different places of the first dimension.
//
// A caller asks for thousands of rows in any order. For each there is a system call or a share of one, so what is
// planned per row has to cost less than that. What must stay true: runs and copies together give each byte of each row
// once; runs are in the order of the row numbers, and rows that are asked for again are copied from the first. For
// memory that the host does not reach, runs are in the order of that memory, and nothing is copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/layout/layout.hpp"

namespace penstock::data {

// Bytes of a row that was read before, in the memory of all rows.
struct RowCopy {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    std::uint64_t bytes = 0;
};

struct RowRuns {
    std::vector<FileRun> runs;
    std::vector<RowCopy> copies;
};

// `box` is that of each row: its start in the first dimension is not looked at, and its count there is 1.
struct WantedRows {
    ElementBox box;
    std::span<const std::int64_t> numbers;
    std::span<const std::size_t> places{};  // of numbers, as places_in_order() gives them; none: all
};

struct RowLimits {
    std::uint64_t run_bytes = 0;    // rows that continue each other become one run up to this length
    std::size_t runs_of_a_row = 0;  // more are worth a table
    bool as_in_memory = false;      // for memory that the host does not reach
};

// Places of the numbers, in the order in which rows are to be read.
// Requires: no number is negative.
std::vector<std::size_t> places_in_order(std::span<const std::int64_t> numbers, bool as_in_memory);

// False: a chunk is not stored, or the limits do not allow it.
// Requires: the rows lie in the dataset, which has a dimension, and are not empty.
bool find_rows(const Layout& layout, const WantedRows& rows, const RowLimits& limits, RowRuns& found);

}  // namespace penstock::data
