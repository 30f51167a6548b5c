// What solve() refuses before it starts, by the name of the option.
#pragma once

#include <span>

#include "hmatrix/solve/solve.hpp"

namespace penstock::hmatrix {

// Throws Error{invalid_argument}.
void check_options(const SolveOptions& options);
// `size`: unknowns. Returns how many right-hand sides there are.
std::int64_t check_vectors(std::int64_t size, std::span<const double> b, std::span<const double> x);

}  // namespace penstock::hmatrix
