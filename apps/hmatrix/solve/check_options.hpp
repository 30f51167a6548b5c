// Checks that solve() makes before it starts. Each refusal names the option.
#pragma once

#include <span>

#include "hmatrix/solve/solve.hpp"

namespace penstock::hmatrix {

// Throws Error{invalid_argument}.
void check_options(const SolveOptions& options);
// `size`: number of unknowns. Returns the number of right-hand sides. Throws Error{invalid_argument}.
std::int64_t check_vectors(std::int64_t size, std::span<const double> b, std::span<const double> x);

}  // namespace penstock::hmatrix
