// The state of a solve in a file, so that one that was killed goes on from where it was.
//
// What is kept is the iterate, the counts, and the name of a log of products that leads there (product_file.hpp): with
// the log a continued solve is where it was, without it its method begins anew from the iterate. A file appears whole
// under its name or not at all: new content replaces it by rename, on stable storage, and a process killed in between
// leaves the checkpoint before. Layout (little-endian; docs of the fields in checkpoint.cpp): a header of 96 bytes,
// then x.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hmatrix/solve/solve.hpp"
#include "penstock/context.hpp"

namespace penstock::hmatrix {

// Which problem a state belongs to.
struct Problem {
    std::int64_t unknowns = 0;
    std::int64_t columns = 0;            // right-hand sides
    std::uint32_t right_hand_side = 0;   // checksum_of(b)
    std::uint64_t matrix = 0;            // any number its owner knows the matrix by, such as a checksum of its file
};

// How much of which log of products leads to a state.
struct ProductsMark {
    std::uint64_t id = 0;  // 0: there is no log
    std::uint64_t bytes = 0;
};

std::uint32_t checksum_of(std::span<const double> b);

struct SolverState {
    Problem problem;
    Method method = Method::fgmres;
    Progress progress;      // counts and residual so far
    std::vector<double> x;  // column-major
    ProductsMark products{};
};

// Throws Error: invalid_argument for a state that does not fit itself, and what the file system says.
void write_checkpoint(const Context& context, const std::string& file, const SolverState& state);

// Throws Error: not_found; invalid_argument for a file that is no checkpoint, of another version, torn, corrupted, or
// of another problem, and says which. The method may be another one: `method` of the state tells which it was.
SolverState read_checkpoint(const Context& context, const std::string& file, const Problem& expected);

}  // namespace penstock::hmatrix
