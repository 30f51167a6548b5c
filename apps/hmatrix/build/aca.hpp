// Adaptive cross approximation: a low-rank block from a few of its rows and columns.
//
// With partial pivoting (Bebendorf 2000), in the order and with the stopping rule of HACApK: ranks, and so bytes, come
// out as HACApK's do. It looks at few entries, so it can miss what it never saw: each block is therefore checked at
// entries drawn by a fixed rule, and goes on where they are wrong.
#pragma once

#include <cstdint>
#include <span>

#include "hmatrix/build/factors.hpp"
#include "hmatrix/kernel/entries.hpp"

namespace penstock::hmatrix {

struct AcaOptions {
    double eps = 1e-4;              // stop when a cross is this much smaller than the first one (2-norms)
    double zero = 1e-3;             // times eps: rows and columns below this hold nothing more
    bool plus = false;              // ACA+: pivots by a reference row and a reference column
    bool from_last_row = false;     // where partial pivoting begins
    std::int64_t check_entries = 8; // drawn afterwards; 0: trust the stopping rule
    double told_eps = 0;            // told_rank is where this eps would have stopped; 0: where eps did
};

struct AcaResult {
    Factors factors;
    std::int64_t told_rank = 0;
    std::int64_t evaluated = 0;  // entries
    std::int64_t repairs = 0;    // times the check found a wrong entry and the approximation went on
    bool converged = false;      // else the rank reached the smaller side: the block is exact, and no smaller for it
};

// The block of the given rows and columns. Throws Error{invalid_argument} when an entry is not a finite number.
AcaResult approximate(const Entries& entries, std::span<const std::int64_t> rows, std::span<const std::int64_t> columns,
                      const AcaOptions& options);

}  // namespace penstock::hmatrix
