// A solve with a checkpoint: begun, or gone on with from the one that is there.
//
// One that goes on repeats the steps of the one before with the products that were kept, and has its numbers from then
// on. Where it cannot (another method, other options, a log that is gone or damaged) it begins its method anew from the
// iterate that was kept, which costs sweeps, and says so.
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
    std::int64_t sweeps_before = 0;  // of the result's sweeps, those that were made before this process
};

// Where a solve leaves its checkpoint, and goes on from one; its products are in `file`.products.
struct CheckpointPlace {
    const Context& context;
    std::string file;
    Problem problem;
};

// Solves from x on, which is the first guess and then the solution.
using RunSolve = std::function<SolveResult(std::span<double> x, const SolveOptions&)>;

// `run` solves with the options it is given, x being the first guess where there is no checkpoint. Throws what
// read_checkpoint throws for a file that is there and is refused, what writing to files throws, and what `run` throws.
ContinuedResult solve_continued(const CheckpointPlace& given, const SolveOptions& options, std::vector<double>& x,
                                const RunSolve& run);

}  // namespace penstock::hmatrix
