// See check_options.hpp.
#include "hmatrix/solve/check_options.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "hmatrix/solve/methods/column.hpp"
#include "hmatrix/text.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

void require(bool condition, const std::string& cause, const std::string& advice) {
    if (!condition) throw Error(ErrorCode::invalid_argument, "solve", cause, advice);
}

void check_count(std::int64_t value, const char* name, std::int64_t least) {
    require(value >= least, std::string(name) + " is " + std::to_string(value),
            "give at least " + std::to_string(least));
}

void require_finite(std::span<const double> values, std::int64_t size, const char* name) {
    const auto found = std::find_if(values.begin(), values.end(), [](double value) { return !std::isfinite(value); });
    if (found == values.end()) return;
    const auto at = static_cast<std::int64_t>(found - values.begin());
    const std::string where = " in row " + std::to_string(at % size) + " of column " + std::to_string(at / size);
    require(false, std::string(name) + " holds " + text_of(*found) + where, "every number must be finite");
}

}  // namespace

void check_options(const SolveOptions& options) {
    require(options.tolerance > 0 && options.tolerance < 1, "tolerance is " + text_of(options.tolerance),
            "give a number above 0 and below 1");
    require(options.inner_tolerance > 0 && options.inner_tolerance < 1,
            "inner_tolerance is " + text_of(options.inner_tolerance), "give a number above 0 and below 1");
    require(options.relaxed_factor > 0 && options.relaxed_factor <= 1,
            "relaxed_factor is " + text_of(options.relaxed_factor), "give a number above 0 and at most 1");
    check_count(options.max_iterations, "max_iterations", 1);
    check_count(options.inner_iterations, "inner_iterations", 1);
    check_count(options.restart, "restart", 0);
    check_count(options.iterations_before, "iterations_before", 0);
    check_count(options.sweeps_before, "sweeps_before", 0);
    check_count(options.checkpoint_sweeps, "checkpoint_sweeps", options.checkpoint ? 1 : 0);
    const Method method = options.method;
    const std::string name = to_string(method);
    require(method != Method::bicgstab || options.restart == 0, "bicgstab does not restart", "leave restart at 0");
    require(method == Method::fgmres || options.surrogate == nullptr, "surrogate cannot be used by " + name,
            "use method fgmres, or give the surrogate's inverse as preconditioner");
    require(method == Method::fgmres || method == Method::gmres || !options.relaxed,
            "relaxed cannot be used by " + name, "use gmres or fgmres: other methods need their products exact");
}

std::int64_t check_vectors(std::int64_t size, std::span<const double> b, std::span<const double> x) {
    const auto numbers = static_cast<std::int64_t>(b.size());
    require(numbers > 0 && numbers % size == 0,
            "b holds " + std::to_string(numbers) + " numbers, the matrix has " + std::to_string(size) + " rows",
            "give whole columns");
    require(x.size() == b.size(),
            "x holds " + std::to_string(x.size()) + " numbers, b " + std::to_string(numbers), "give as many");
    require_finite(b, size, "b");
    require_finite(x, size, "x");
    return numbers / size;
}

}  // namespace penstock::hmatrix
