// Runs a solve with a checkpoint: starts it, or continues from the checkpoint that exists.
//
// A continued solve repeats the steps of the earlier solve with the products that the log kept. From then on it has the
// same numbers. If it cannot repeat them (another method, other options, a missing or damaged log), the method starts
// anew from the stored iterate, which costs sweeps, and the result says so.
#pragma once

#include <functional>
#include <string>

#include "hmatrix/solve/continued/checkpoint.hpp"

namespace penstock::hmatrix {

enum class Continued : std::uint8_t { no, repeated, restarted };
const char* to_string(Continued how) noexcept;  // "no", "repeated", "restarted"

struct ContinuedResult {
    SolveResult result;
    Continued how = Continued::no;
    std::string restarted_because;
    std::int64_t sweeps_before = 0;  // how many of the result's sweeps earlier processes made
};

// Where a solve keeps its checkpoint. Its log of products is in `file`.products.
struct CheckpointPlace {
    const Context& context;
    std::string file;
    Problem problem;
};

// Solves from x on: x is the first guess on entry and the solution on return.
using RunSolve = std::function<SolveResult(std::span<double> x, const SolveOptions&)>;

// `run` solves with the options that it receives. Without a checkpoint, x is the first guess. Throws what
// read_checkpoint throws for a file that it refuses, errors of writing files, and what `run` throws.
ContinuedResult solve_continued(const CheckpointPlace& given, const SolveOptions& options, std::vector<double>& x,
                                const RunSolve& run);

}  // namespace penstock::hmatrix
