// See column.hpp.
#include "hmatrix/solve/methods/column.hpp"

#include <cmath>
#include <utility>

namespace penstock::hmatrix {

double larger_residual(double a, double b) noexcept { return std::isnan(a) || a > b ? a : b; }

double SolveContext::norm(const double* x) const { return std::sqrt(space.dot(x, x)); }

bool Column::iteration_done(double residual_norm) {
    ++iterations;
    if (stop_unless_finite(residual_norm, "the residual")) return true;
    residual = residual_norm / b_norm;
    if (residual < options().tolerance) return true;
    if (options().iterations_before + iterations >= options().max_iterations) stop("iterations");
    return !stopped.empty();
}

void Column::stop(std::string why) {
    if (stopped.empty()) stopped = std::move(why);
}

bool Column::stop_unless_finite(double number, const char* what) {
    if (std::isfinite(number)) return false;
    stop(std::string("breakdown: ") + what + " is not a finite number");
    return true;
}

void Column::start(Task task) {
    task_ = std::move(task);
    begin(task_);
}

void Column::advance() {
    while (!waiting_ && !stack_.empty()) {
        const std::coroutine_handle<> innermost = stack_.back();
        innermost.resume();
        if (!innermost.done()) continue;
        stack_.pop_back();
        if (stack_.empty() && innermost == task_.handle()) task_.rethrow();
    }
}

}  // namespace penstock::hmatrix
