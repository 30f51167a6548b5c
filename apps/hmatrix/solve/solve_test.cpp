// Solvers on dense problems of known solution: right answers, truthful reasons for stopping, and refused options.
#include "hmatrix/solve/solve.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>
#include <vector>

#include "hmatrix/solve/dense_rig.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

constexpr std::array kMethods{Method::fgmres, Method::gmres, Method::bicgstab, Method::gcr, Method::idr};
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Solved {
    SolveResult result;
    std::vector<double> x;
};

Solved solve_from(const Dense& matrix, const std::vector<double>& b, std::vector<double> x,
                  const SolveOptions& options) {
    const auto space = make_host_vectors(matrix.size);
    DenseOperator sweeps(matrix);
    SolveResult result = solve(*space, {sweeps, b, x}, options);
    return {std::move(result), std::move(x)};
}

Solved solve_dense(const Dense& matrix, const std::vector<double>& b, const SolveOptions& options) {
    return solve_from(matrix, b, std::vector<double>(b.size()), options);
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<double> difference = a;
    for (std::size_t i = 0; i < a.size(); ++i) difference[i] -= b[i];
    return norm_of(difference) / norm_of(b);
}

TEST(Solve, every_method_finds_a_known_solution) {
    const std::int64_t n = 90;
    for (const bool symmetric : {false, true}) {
        const Dense matrix = well_conditioned(n, 1, symmetric);
        const std::vector<double> known = random_numbers(n, 2);
        const std::vector<double> b = matrix.times(known);
        for (const Method method : kMethods) {
            const Solved found = solve_dense(matrix, b, {.method = method, .tolerance = 1e-11});
            EXPECT_TRUE(found.result.converged) << to_string(method);
            EXPECT_EQ(found.result.stopped_by, "tolerance");
            EXPECT_LT(distance(found.x, known), 1e-10) << to_string(method);
            EXPECT_LT(relative_residual(matrix, b, found.x), 1e-11);
            EXPECT_LT(found.result.iterations, 60) << to_string(method);
            EXPECT_EQ(found.result.history.size(), static_cast<std::size_t>(found.result.iterations));
            EXPECT_DOUBLE_EQ(found.result.history.back(), found.result.believed_residual);
        }
    }
}

TEST(Solve, ill_conditioned_systems_are_solved_to_a_small_true_residual) {
    const std::int64_t n = 60;
    for (const bool symmetric : {false, true}) {
        const Dense matrix = conditioned(n, symmetric ? 1e4 : 1e3, 3, symmetric);
        const std::vector<double> b = matrix.times(random_numbers(n, 4));
        for (const Method method : kMethods) {
            const Solved found = solve_dense(matrix, b, {.method = method, .tolerance = 1e-6, .max_iterations = 20000,
                                                         .restart = method == Method::gcr ? 60 : 0});
            EXPECT_EQ(found.result.stopped_by, "tolerance") << to_string(method) << (symmetric ? " symmetric" : "");
            const double residual = relative_residual(matrix, b, found.x);
            EXPECT_LT(residual, 1e-6 * (1 + 1e-9)) << to_string(method);
            EXPECT_NEAR(found.result.relative_residual, residual, 1e-12);
        }
    }
}

TEST(Solve, an_integral_equation_takes_the_sweeps_its_method_should) {
    const Dense matrix = single_layer(300);
    const std::vector<double> b(300, 1.0);
    std::vector<std::int64_t> sweeps;
    for (const Method method : {Method::gmres, Method::gcr, Method::idr, Method::bicgstab}) {
        std::vector<double> mixed = b;
        for (std::size_t i = 0; i < mixed.size(); i += 3) mixed[i] = -0.5;
        const Solved found = solve_dense(matrix, mixed, {.method = method, .tolerance = 1e-6});
        ASSERT_TRUE(found.result.converged) << to_string(method);
        sweeps.push_back(found.result.sweeps);
    }
    for (std::size_t i = 1; i < sweeps.size(); ++i) EXPECT_LE(sweeps[0], sweeps[i]) << "GMRES is the shortest way";
}

TEST(Solve, a_single_unknown_is_solved_in_one_iteration) {
    Dense matrix(1);
    matrix.values = {-4.0};
    for (const Method method : kMethods) {
        const Solved found = solve_dense(matrix, {2.0}, {.method = method});
        EXPECT_TRUE(found.result.converged) << to_string(method) << ": " << found.result.stopped_by;
        EXPECT_DOUBLE_EQ(found.x[0], -0.5);
        EXPECT_EQ(found.result.iterations, 1) << to_string(method);
    }
}

TEST(Solve, nothing_to_solve_costs_nothing) {
    const Dense matrix = well_conditioned(20, 5);
    const std::vector<double> known = random_numbers(20, 6);
    for (const Method method : kMethods) {
        const Solved zero = solve_from(matrix, std::vector<double>(20), known, {.method = method});
        EXPECT_TRUE(zero.result.converged);
        EXPECT_EQ(zero.x, std::vector<double>(20)) << "b is 0, and so is x";
        EXPECT_EQ(zero.result.iterations + zero.result.sweeps, 0);
        EXPECT_EQ(zero.result.relative_residual, 0);

        const Solved there = solve_from(matrix, matrix.times(known), known, {.method = method});
        EXPECT_TRUE(there.result.converged);
        EXPECT_EQ(there.x, known) << "a first guess that solves is the answer";
        EXPECT_EQ(there.result.iterations, 0);
        EXPECT_EQ(there.result.sweeps, 1) << "one product shows that it does";
    }
}

TEST(Solve, repeated_runs_give_the_same_bits) {
    const Dense matrix = single_layer(120);
    const std::vector<double> b = random_numbers(120, 7);
    for (const Method method : kMethods) {
        const SolveOptions options{.method = method, .tolerance = 1e-8};
        const Solved first = solve_dense(matrix, b, options), second = solve_dense(matrix, b, options);
        EXPECT_EQ(first.x, second.x) << to_string(method);
        EXPECT_EQ(first.result.history, second.result.history);
    }
}

TEST(Solve, a_good_preconditioner_saves_sweeps_in_every_method) {
    Dense matrix = well_conditioned(80, 8);
    Dense inverse_of_scaling(80);
    for (std::int64_t i = 0; i < 80; ++i) {
        const double scale = std::pow(10.0, static_cast<double>(i % 4));
        for (std::int64_t j = 0; j < 80; ++j) matrix.at(j, i) *= scale;
        inverse_of_scaling.at(i, i) = 1 / scale;
    }
    const std::vector<double> b = random_numbers(80, 9);
    for (const Method method : kMethods) {
        DenseOperator right(inverse_of_scaling);
        SolveOptions options{.method = method, .tolerance = 1e-9, .max_iterations = 2000};
        const Solved plain = solve_dense(matrix, b, options);
        options.preconditioner = &right;
        const Solved helped = solve_dense(matrix, b, options);
        ASSERT_TRUE(helped.result.converged) << to_string(method);
        EXPECT_LT(relative_residual(matrix, b, helped.x), 1.001e-9);
        EXPECT_LT(2 * helped.result.sweeps, plain.result.sweeps) << to_string(method);
    }
}

TEST(Solve, a_product_that_is_not_a_number_is_named_and_x_stays_finite) {
    const Dense matrix = well_conditioned(30, 10);
    const std::vector<double> b = random_numbers(30, 11);
    for (const Method method : kMethods) {
        for (const std::int64_t bad : {1, 2, 4}) {
            const auto space = make_host_vectors(30);
            DenseOperator sweeps(matrix);
            sweeps.after_apply = [&](std::int64_t applies, double* y) {
                if (applies == bad) y[3] = kNaN;
            };
            std::vector<double> x(30);
            const SolveResult result = solve(*space, {sweeps, b, x}, {.method = method, .tolerance = 1e-12});
            EXPECT_FALSE(result.converged);
            EXPECT_NE(result.stopped_by.find("not a finite number"), std::string::npos)
                << to_string(method) << ": " << result.stopped_by;
            for (const double value : x) ASSERT_TRUE(std::isfinite(value)) << to_string(method);
            if (bad == 1) continue;  // with bicgstab, this product was the first residual
            EXPECT_NEAR(result.relative_residual, relative_residual(matrix, b, x), 1e-12);
        }
    }
}

TEST(Solve, breakdowns_are_named_and_never_called_solved) {
    Dense rotation(2), singular(6), nothing(4);
    rotation.at(0, 1) = 1;
    rotation.at(1, 0) = -1;
    for (int i = 0; i < 5; ++i) singular.at(i, i) = 1 + i;
    for (const Method method : kMethods) {
        const SolveOptions options{.method = method, .max_iterations = 300};
        const Solved turned = solve_dense(rotation, {1, 0}, options);
        if (turned.result.converged) {
            EXPECT_LT(relative_residual(rotation, std::vector<double>{1, 0}, turned.x), 1e-5);
        } else {
            EXPECT_EQ(turned.result.stopped_by.rfind("breakdown", 0), 0u) << turned.result.stopped_by;
        }
        for (const Dense* matrix : {&singular, &nothing}) {
            const std::vector<double> b(static_cast<std::size_t>(matrix->size), 1.0);
            const Solved hopeless = solve_dense(*matrix, b, options);
            EXPECT_FALSE(hopeless.result.converged) << to_string(method);
            EXPECT_NE(hopeless.result.stopped_by, "tolerance");
            EXPECT_NEAR(hopeless.result.relative_residual, relative_residual(*matrix, b, hopeless.x), 1e-12);
        }
    }
    // For GMRES the Krylov space is the whole space, so it solves the rotation. BiCGSTAB and GCR cannot take their
    // first step.
    EXPECT_TRUE(solve_dense(rotation, {1, 0}, {.method = Method::gmres}).result.converged);
    EXPECT_FALSE(solve_dense(rotation, {1, 0}, {.method = Method::bicgstab}).result.converged);
    EXPECT_FALSE(solve_dense(rotation, {1, 0}, {.method = Method::gcr}).result.converged);
}

TEST(Solve, too_few_iterations_and_a_callback_end_a_solve_by_name) {
    const Dense matrix = single_layer(150);
    const std::vector<double> b = random_numbers(150, 12);
    for (const Method method : kMethods) {
        const Solved cut = solve_dense(matrix, b, {.method = method, .tolerance = 1e-12, .max_iterations = 3});
        EXPECT_EQ(cut.result.stopped_by, "iterations") << to_string(method);
        EXPECT_EQ(cut.result.iterations, 3);
        EXPECT_FALSE(cut.result.converged);
        EXPECT_NEAR(cut.result.relative_residual, cut.result.believed_residual, 1e-10);

        std::vector<Progress> seen;
        SolveOptions options{.method = method, .tolerance = 1e-12};
        options.progress = [&](const Progress& progress) {
            seen.push_back(progress);
            return progress.iteration < 3;
        };
        const Solved told = solve_dense(matrix, b, options);
        EXPECT_EQ(told.result.stopped_by, "callback");
        EXPECT_EQ(told.x, cut.x) << "what the third iteration left, " << to_string(method);
        ASSERT_EQ(seen.size(), 3u);
        EXPECT_EQ(seen[1].iteration, 2);
        EXPECT_EQ(seen[2].relative_residual, told.result.history[2]);
        EXPECT_EQ(seen[2].sweeps, told.result.sweeps);
    }
}

TEST(Solve, exceptions_of_operators_and_callbacks_pass_and_leave_x_alone) {
    const Dense matrix = well_conditioned(10, 13);
    const std::vector<double> b = random_numbers(20, 14);
    const auto space = make_host_vectors(10);
    DenseOperator sweeps(matrix);
    sweeps.after_apply = [](std::int64_t applies, double*) {
        if (applies == 3) throw Error(ErrorCode::io_error, "read", "the disk is gone");
    };
    std::vector<double> x(20, 0.25);
    const std::vector<double> before = x;
    EXPECT_THROW(solve(*space, {sweeps, b, x}, {}), Error);
    EXPECT_EQ(x, before);
    sweeps.after_apply = nullptr;
    SolveOptions options;
    options.progress = [](const Progress&) -> bool { throw std::string("mine"); };
    EXPECT_THROW(solve(*space, {sweeps, b, x}, options), std::string);
    EXPECT_EQ(x, before);
}

TEST(Solve, methods_are_known_by_name) {
    for (const Method method : kMethods) EXPECT_EQ(method_from_name(to_string(method)), method);
    try {
        method_from_name("cg");
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(error.info().advice.find("fgmres, gmres, bicgstab, gcr, idr"), std::string::npos);
    }
}

}  // namespace
}  // namespace penstock::hmatrix
