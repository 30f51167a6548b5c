// Stores the state of a solve in a file, so that a solve whose process was killed can continue.
//
// A checkpoint holds the iterate, the counts, and the name of a log of products (product_file.hpp). With the log, the
// continued solve reaches exactly the state of the checkpoint. Without it, the method starts anew from the iterate. A
// checkpoint appears complete under its name or not at all: new content is made durable and replaces the old file by
// rename. A process that is killed in between leaves the previous checkpoint. Layout (little-endian; checkpoint.cpp
// lists the fields): a header of 96 bytes, then x.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hmatrix/solve/solve.hpp"
#include "penstock/context.hpp"

namespace penstock::hmatrix {

// The problem that a state belongs to.
struct Problem {
    std::int64_t unknowns = 0;
    std::int64_t columns = 0;  // number of right-hand sides
    std::uint32_t right_hand_side = 0;  // checksum_of(b)
    std::uint64_t matrix = 0;  // any number that identifies the matrix for the caller, e.g. a checksum of its file
};

// Which log of products leads to a state, and how many of its bytes.
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

// Throws Error{invalid_argument} if x does not have unknowns * columns numbers, and errors of the file system.
void write_checkpoint(const Context& context, const std::string& file, const SolverState& state);

// Throws Error{not_found}. Throws Error{invalid_argument} that names the reason, for a file that is not a checkpoint,
// has another version, is torn or corrupted, or belongs to another problem. The caller may continue with another
// method; `method` is the one that wrote the state.
SolverState read_checkpoint(const Context& context, const std::string& file, const Problem& expected);

}  // namespace penstock::hmatrix
