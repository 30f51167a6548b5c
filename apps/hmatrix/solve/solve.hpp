// Krylov methods for A x = b: their options and results.
//
// A sweep is one pass of the operator over its matrix. Sweeps cost the time if the matrix lies on a disk, so methods
// are compared by sweeps. Every result contains the true residual ||b - A x|| / ||b||, which takes one more product,
// beside the residual that the method's recurrence gives (the believed residual).
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
Method method_from_name(const std::string& name);  // throws Error{invalid_argument} that lists the names

struct Progress {
    std::int64_t iteration = 0;
    std::int64_t sweeps = 0;
    double relative_residual = 1;  // believed
};

struct SolveOptions {
    Method method = Method::fgmres;
    double tolerance = 1e-5;  // for ||r|| / ||b||; above 0 and below 1
    std::int64_t max_iterations = 500;
    // gmres, fgmres: basis vectors before a restart, 0 for no restart. gcr: m (8 if 0). idr: s (4 if 0). bicgstab: 0.
    std::int64_t restart = 0;
    // gmres, fgmres: products are only as accurate as the residual requires:
    // relaxed_factor * tolerance / (||r|| / ||b||).
    bool relaxed = false;
    double relaxed_factor = 0.3;    // above 0, at most 1
    double inner_tolerance = 1e-2;  // fgmres: tolerance of the inner solve with the surrogate
    std::int64_t inner_iterations = 60;
    LinearOperator* preconditioner = nullptr;  // z = M r from the right, linear; null: none
    // fgmres: a cheap operator near A, which the inner solve uses; null: none.
    LinearOperator* surrogate = nullptr;
    std::function<bool(const Progress&)> progress{};  // called after each iteration; returning false ends the solve
    // The solver calls it every `checkpoint_sweeps` (at least 1) sweeps, with the iterate of every right-hand side. To
    // start a new solve from a checkpoint, pass x as the first guess and the counts as iterations_before and
    // sweeps_before. To repeat the steps that led there, see continued.hpp.
    std::int64_t checkpoint_sweeps = 0;
    std::function<void(std::span<const double> x, const Progress&)> checkpoint{};
    // Counts of the solve that this one continues. Results include them, and max_iterations limits the sum.
    std::int64_t iterations_before = 0;
    std::int64_t sweeps_before = 0;
    // Records the products of this solve. While it still has recorded products, they replace those of the operator; the
    // solver then neither reports progress nor makes checkpoints. Null: records nothing.
    ProductLog* products = nullptr;
};

struct SolveResult {
    bool converged = false;  // the true residual of every right-hand side is below the tolerance
    // "tolerance", "iterations", "callback", "breakdown: ...", or "stagnation: ...". With several right-hand sides, the
    // reason and the index of the first that did not converge.
    std::string stopped_by;
    std::int64_t iterations = 0;        // maximum over the right-hand sides
    std::int64_t inner_iterations = 0;  // products with the surrogate; one serves all right-hand sides
    std::int64_t sweeps = 0;            // products with A, without the check of the true residual
    double relative_residual = 1;       // true residual, maximum over the right-hand sides
    double believed_residual = 1;
    std::vector<double> residuals;  // true residual of each right-hand side
    std::vector<double> history;    // believed residual after each iteration, maximum over the right-hand sides
};

// A x = b. b and x hold one or more right-hand sides, column-major, in host memory.
struct Equations {
    LinearOperator& matrix;
    std::span<const double> b;
    std::span<double> x;  // the first guess, and the solution when solve() returns
};

// Solves A x = b. Several right-hand sides share products: one sweep serves them all, and each stops on its own. A
// first guess of 0 costs no sweep, except with bicgstab, which makes the same sweeps as HACApK: 1, and 2 an iteration.
//
// When a method reports convergence, solve() computes the true residual. If that is not below the tolerance, the method
// continues from there, and the product of the check counts as a sweep. Every run gives the same numbers if the
// operators do.
//
// Throws Error{invalid_argument} for options out of range and for b or x that are not finite. Exceptions of operators
// and callbacks pass through. If solve() throws, x is unchanged.
SolveResult solve(VectorSpace& space, const Equations& equations, const SolveOptions& options);

}  // namespace penstock::hmatrix
