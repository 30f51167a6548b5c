// Adaptive cross approximation: a low-rank block from a few of its rows and columns.
//
// It uses partial pivoting (Bebendorf 2000), with the order and the stopping rule of HACApK, so ranks and bytes equal
// HACApK's. The method evaluates few entries and can miss parts of a block. It therefore checks each block at entries
// drawn by a fixed rule, and continues if it finds wrong ones.
#pragma once

#include <cstdint>
#include <span>

#include "hmatrix/build/factors.hpp"
#include "hmatrix/kernel/entries.hpp"

namespace penstock::hmatrix {

struct AcaOptions {
    double eps = 1e-4;               // stop when a cross is smaller than eps times the first one (2-norms)
    double zero = 1e-3;              // times eps and the largest pivot: a row or column below this is empty
    bool plus = false;               // ACA+: a reference row and a reference column give the pivots
    bool from_last_row = false;      // partial pivoting begins with the last row, otherwise with the first
    std::int64_t check_entries = 8;  // entries to check at the end; 0: trust the stopping rule
    double told_eps = 0;             // told_rank is the rank where this eps would have stopped; 0: eps itself
};

struct AcaResult {
    Factors factors;
    std::int64_t told_rank = 0;
    std::int64_t evaluated = 0;  // entries
    std::int64_t repairs = 0;    // how often the check found a wrong entry and the approximation continued
    bool converged = false;      // false: the rank reached the smaller side, so the block is exact and not smaller
};

// Approximates the block of the given rows and columns. Throws Error{invalid_argument} if an entry is not a finite
// number, and Error{unsupported} for a large block that is not of low rank.
AcaResult approximate(const Entries& entries, std::span<const std::int64_t> rows, std::span<const std::int64_t> columns,
                      const AcaOptions& options);

}  // namespace penstock::hmatrix
