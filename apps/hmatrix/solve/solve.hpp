// Krylov methods for A x = b: what is asked, and what came out.
//
// One sweep is one pass of the operator over its matrix: what costs time when the matrix lies on a disk, so methods are
// chosen and compared by sweeps. Every result states the true residual ||b - A x|| / ||b||, computed with one further
// product, beside the one the method believed in.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "hmatrix/solve/vectors.hpp"

namespace penstock::hmatrix {

class ProductLog;

enum class Method : std::uint8_t { fgmres, gmres, bicgstab, gcr, idr };
const char* to_string(Method method) noexcept;
Method method_from_name(const std::string& name);  // throws Error{invalid_argument} listing the names

struct Progress {
    std::int64_t iteration = 0;
    std::int64_t sweeps = 0;
    double relative_residual = 1;  // as the method believes
};

struct SolveOptions {
    Method method = Method::fgmres;
    double tolerance = 1e-5;          // of ||r|| / ||b||; above 0 and below 1
    std::int64_t max_iterations = 500;
    std::int64_t restart = 0;         // gmres, fgmres: basis vectors before a restart, 0 for none; gcr: m (8 when 0);
                                      // idr: s (4 when 0); bicgstab: 0
    // gmres, fgmres: products only as accurate as the residual needs them: relaxed_factor * tolerance / (||r|| / ||b||)
    bool relaxed = false;
    double relaxed_factor = 0.3;      // above 0, at most 1
    double inner_tolerance = 1e-2;    // fgmres: of the inner solve with the surrogate
    std::int64_t inner_iterations = 60;
    LinearOperator* preconditioner = nullptr;  // z = M r (right preconditioning), linear; null: none
    LinearOperator* surrogate = nullptr;       // fgmres: a cheap operator near A, solved with inside; null: none
    std::function<bool(const Progress&)> progress{};  // after each iteration; false ends the solve
    // Called every `checkpoint_sweeps` sweeps, at least 1, with the state to continue from, of one or several
    // right-hand sides. To begin anew from there, give x as the first guess and the counts as the two numbers below; to
    // repeat the steps that led there, see continued.hpp.
    std::int64_t checkpoint_sweeps = 0;
    std::function<void(std::span<const double> x, const Progress&)> checkpoint{};
    // Of the solve that this one continues: counted in what is reported and against max_iterations.
    std::int64_t iterations_before = 0;
    std::int64_t sweeps_before = 0;
    // Where products are kept, and come from instead of the operator while it has some: nothing is told of what is only
    // repeated, and no checkpoint made. Null: none are.
    ProductLog* products = nullptr;
};

struct SolveResult {
    bool converged = false;  // the true residual of every right-hand side is below the tolerance
    // "tolerance", "iterations", "callback", "breakdown: ...", "stagnation: ..."; of several right-hand sides the first
    // that did not converge, and its number.
    std::string stopped_by;
    std::int64_t iterations = 0;        // the most of any right-hand side
    std::int64_t inner_iterations = 0;  // products with the surrogate; one serves all right-hand sides
    std::int64_t sweeps = 0;         // products with A, the check of the true residual not counted
    double relative_residual = 1;    // true: the largest of all right-hand sides
    double believed_residual = 1;
    std::vector<double> residuals;   // true, of each right-hand side
    std::vector<double> history;     // believed residual after each iteration, the largest of all right-hand sides
};

// b and x: `count` right-hand sides, column-major, in host memory; x holds the first guess and then the solution. With
// several, products are shared: one sweep serves them all, and each stops alone. A first guess of 0 costs no sweep,
// except for bicgstab, which makes the sweeps that HACApK makes: 1 and 2 an iteration.
//
// A method that believes in its residual is checked; where the true residual is not below the tolerance it goes on from
// there, and the product of the check then counts as a sweep. The same numbers come out of every run, as far as the
// operators give the same.
//
// Throws Error{invalid_argument} for options that make no sense and for b or x that are not finite, and what operators
// and callbacks throw; x is then as it was.
SolveResult solve(VectorSpace& space, LinearOperator& matrix, std::span<const double> b, std::span<double> x,
                  const SolveOptions& options);

}  // namespace penstock::hmatrix
