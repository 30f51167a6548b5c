// See solve.hpp. This file starts a method, checks the residual that it believes in, and collects the results.
#include "hmatrix/solve/solve.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "hmatrix/solve/check_options.hpp"
#include "hmatrix/solve/continued/product_log.hpp"
#include "hmatrix/solve/methods/lockstep.hpp"
#include "hmatrix/solve/methods/methods.hpp"
#include "hmatrix/text.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

constexpr std::array kMethods{Method::fgmres, Method::gmres, Method::bicgstab, Method::gcr, Method::idr};
constexpr std::int64_t kShadowSize = 4;
// A method whose believed residual was wrong may continue if each attempt reduces the true residual to at most this
// part.
constexpr double kProgress = 0.9;
// If products were relaxed too much for this matrix, their accuracy is multiplied by kMoreCautious before the solve
// counts as failed.
constexpr double kMoreCautious = 0.1;
constexpr double kMostCautious = 1e-6;

Task start_method(Column& column) {
    switch (column.options().method) {
        case Method::gmres: return gmres(column);
        case Method::bicgstab: return bicgstab(column);
        case Method::gcr: return gcr(column);
        case Method::idr: return idr(column);
        case Method::fgmres: break;
    }
    return fgmres(column);
}

// Turns r = A x into r = b - A x, and returns its norm relative to b's.
double residual_from_product(Column& column) {
    column.space().scale(-1, column.r);
    column.space().add(1, column.b, column.r);
    return column.context.norm(column.r) / column.b_norm;
}

bool may_iterate(Column& column) {
    const SolveOptions& options = column.options();
    if (options.iterations_before + column.iterations >= options.max_iterations) column.stop("iterations");
    return column.stopped.empty();
}

// With a singular matrix, x can overflow while the residual stays small. Restores the last finite x then.
void take_back_if_lost(Column& column, const double* good_x, double good_residual) {
    if (std::isfinite(column.true_residual) || std::isfinite(column.context.norm(column.x))) return;
    column.stop("breakdown: the solution grew beyond all numbers");
    column.space().copy(good_x, column.x);
    column.true_residual = good_residual;
}

// Runs the method until the true residual is below the tolerance or the method cannot continue.
Task solve_column(Column& column, bool guess_is_zero) {
    const double tolerance = column.options().tolerance;
    if (guess_is_zero && column.options().method != Method::bicgstab) {
        column.space().copy(column.b, column.r);
        column.true_residual = 1;
    } else {
        const bool granted = co_await column.multiply(column.x, column.r);
        if (!granted) co_await column.check();
        column.true_residual = residual_from_product(column);
    }
    column.residual = column.true_residual;
    column.stop_unless_finite(column.true_residual, "the first residual");
    const std::shared_ptr<double> good_x = column.context.vectors(1);
    while (!(column.true_residual < tolerance) && may_iterate(column)) {
        const double before = column.true_residual;
        column.space().copy(column.x, good_x.get());
        Task method = start_method(column);
        co_await column.run(method);
        co_await column.check();
        column.true_residual = residual_from_product(column);
        take_back_if_lost(column, good_x.get(), before);
        if (column.true_residual < tolerance || !column.stopped.empty()) break;
        column.stop_unless_finite(column.true_residual, "the true residual");
        if (column.options().relaxed && column.caution > kMostCautious) {
            column.caution *= kMoreCautious;
        } else if (!(column.true_residual < kProgress * before)) {
            column.stop("stagnation: the method believes in a residual of " + text_of(column.residual) +
                        ", the true one is " + text_of(column.true_residual));
        }
        if (!may_iterate(column)) break;
        column.residual = column.true_residual;
        if (column.context.check_unpaid) ++column.context.sweeps;
        column.context.check_unpaid = false;
    }
    column.converged = column.true_residual < tolerance;
}

SolveResult result_of(const SolveContext& context, const std::vector<Column>& columns, const Lockstep& lockstep) {
    SolveResult result;
    result.converged = true;
    result.stopped_by = "tolerance";
    result.iterations = context.options.iterations_before + lockstep.iterations();
    result.inner_iterations = context.inner_products;
    result.sweeps = context.options.sweeps_before + context.sweeps;
    result.believed_residual = lockstep.largest_residual();
    result.relative_residual = 0;
    result.history = lockstep.history();
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const Column& column = columns[i];
        result.residuals.push_back(column.true_residual);
        result.relative_residual = larger_residual(result.relative_residual, column.true_residual);
        if (column.converged || !result.converged) continue;
        result.converged = false;
        result.stopped_by = column.stopped;
        if (columns.size() > 1) result.stopped_by += " (right-hand side " + std::to_string(i) + ")";
    }
    return result;
}

bool is_zero(std::span<const double> values) {
    return std::all_of(values.begin(), values.end(), [](double value) { return value == 0; });
}

// One column for each right-hand side, with its vectors in the solver's memory.
struct RightHandSides {
    RightHandSides(SolveContext& owner, std::span<const double> b, std::span<const double> x);

    SolveContext& context;
    std::int64_t size;
    std::vector<std::shared_ptr<double>> memory;  // b, x and r of each column
    std::vector<Column> columns;
};

RightHandSides::RightHandSides(SolveContext& owner, std::span<const double> b, std::span<const double> x)
    : context(owner), size(owner.space.size()) {
    const auto length = static_cast<std::size_t>(size);
    const std::size_t count = b.size() / length;
    columns.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        memory.push_back(context.vectors(3));
        double* const own = memory.back().get();
        Column& column = columns.emplace_back(context, own, own + size, own + 2 * size);
        const std::span<const double> right = b.subspan(i * length, length), guess = x.subspan(i * length, length);
        context.space.upload(right, own);
        column.b_norm = context.norm(column.b);
        if (is_zero(right)) {
            column.residual = column.true_residual = 0;
            column.converged = true;
            continue;
        }
        if (!std::isnormal(column.b_norm)) {
            throw Error(ErrorCode::invalid_argument, "solve",
                        "the norm of column " + std::to_string(i) + " of b is beyond what a number can hold",
                        "scale the problem");
        }
        context.space.upload(guess, column.x);
        column.start(solve_column(column, is_zero(guess)));
    }
}

}  // namespace

const char* to_string(Method method) noexcept {
    switch (method) {
        case Method::fgmres: return "fgmres";
        case Method::gmres: return "gmres";
        case Method::bicgstab: return "bicgstab";
        case Method::gcr: return "gcr";
        case Method::idr: return "idr";
    }
    return "?";
}

Method method_from_name(const std::string& name) {
    std::string names;
    for (const Method method : kMethods) {
        if (name == to_string(method)) return method;
        names += (names.empty() ? "" : ", ") + std::string(to_string(method));
    }
    throw Error(ErrorCode::invalid_argument, "choose a method", "there is no method '" + name + "'", "one of " + names);
}

SolveResult solve(VectorSpace& space, const Equations& equations, const SolveOptions& options) {
    const auto& [matrix, b, x] = equations;
    check_options(options);
    const std::int64_t count = check_vectors(space.size(), b, x);
    SolveContext context{.space = space, .options = options};
    if (options.method == Method::idr) {
        context.shadow_size = std::min(options.restart == 0 ? kShadowSize : options.restart, space.size());
        context.shadow = idr_shadow(space, context.shadow_size);
    }
    RightHandSides work(context, b, x);
    std::optional<LoggedOperator> logged;
    const bool with_operands = !space.repeatable() && options.method == Method::fgmres;
    if (options.products != nullptr) logged.emplace(space, matrix, *options.products, with_operands);
    LinearOperator& products = logged ? static_cast<LinearOperator&>(*logged) : matrix;
    Lockstep lockstep(context, products, work.columns);
    lockstep.run();
    const auto length = static_cast<std::size_t>(space.size());
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
        space.download(work.columns[i].x, x.subspan(i * length, length));
    }
    return result_of(context, work.columns, lockstep);
}

}  // namespace penstock::hmatrix
