// Several right-hand sides at once: the same columns as one by one, fewer sweeps, and each column stops on its own.
#include "hmatrix/solve/methods/lockstep.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "hmatrix/solve/dense_rig.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

constexpr std::int64_t kUnknowns = 160;
constexpr std::int64_t kColumns = 4;
const Method kMethods[] = {Method::fgmres, Method::gmres, Method::bicgstab, Method::gcr, Method::idr};

// Right-hand sides of different difficulty: smooth, random, zero, and one that the first guess nearly solves.
struct Sides {
    Dense matrix = single_layer(kUnknowns);
    std::vector<double> b = random_numbers(kUnknowns * kColumns, 1);
    std::vector<double> x = std::vector<double>(b.size());
    Dense rough = matrix;

    Sides() {
        std::fill_n(b.begin(), kUnknowns, 1.0);
        std::fill_n(b.begin() + 2 * kUnknowns, kUnknowns, 0.0);
        const std::vector<double> near = random_numbers(kUnknowns, 2);
        const std::vector<double> image = matrix.times(near);
        for (std::int64_t i = 0; i < kUnknowns; ++i) {
            b[3 * kUnknowns + i] = image[i];
            x[3 * kUnknowns + i] = near[i] * (1 + 1e-5 * static_cast<double>(i % 3));
        }
        for (std::size_t i = 0; i < rough.values.size(); i += 3) rough.values[i] *= 1.01;
    }
};

std::vector<double> part(const std::vector<double>& all, std::int64_t column) {
    return {all.begin() + column * kUnknowns, all.begin() + (column + 1) * kUnknowns};
}

TEST(Lockstep, several_right_hand_sides_give_the_columns_of_one_by_one_in_fewer_sweeps) {
    const Sides sides;
    const auto space = make_host_vectors(kUnknowns);
    for (const Method method : kMethods) {
        DenseOperator surrogate(sides.rough);
        SolveOptions options{.method = method, .tolerance = 1e-7};
        if (method == Method::fgmres) options.surrogate = &surrogate;
        DenseOperator together(sides.matrix);
        std::vector<double> x = sides.x;
        const SolveResult all = solve(*space, {together, sides.b, x}, options);
        EXPECT_TRUE(all.converged) << to_string(method) << ": " << all.stopped_by;
        std::int64_t most = 0, sum = 0;
        for (std::int64_t c = 0; c < kColumns; ++c) {
            DenseOperator alone(sides.matrix);
            std::vector<double> one = part(sides.x, c);
            const SolveResult result = solve(*space, {alone, part(sides.b, c), one}, options);
            EXPECT_EQ(part(x, c), one) << to_string(method) << ", column " << c;
            EXPECT_EQ(all.residuals[static_cast<std::size_t>(c)], result.relative_residual);
            most = std::max(most, result.sweeps);
            sum += result.sweeps;
        }
        EXPECT_EQ(all.sweeps, most) << "the hardest column decides";
        EXPECT_LT(3 * all.sweeps, 2 * sum) << to_string(method);
        EXPECT_EQ(together.applies(), all.sweeps + 1) << "one check for all";
        EXPECT_LE(together.columns, sum + kColumns) << "a column that has ended is not multiplied";
    }
}

TEST(Lockstep, one_column_that_breaks_does_not_end_the_others) {
    Sides sides;
    const auto space = make_host_vectors(kUnknowns);
    DenseOperator sweeps(sides.matrix);
    sweeps.after_apply = [](std::int64_t applies, double* y) {
        if (applies == 3) y[kUnknowns] = std::numeric_limits<double>::quiet_NaN();  // the second active column
    };
    const SolveResult result = solve(*space, {sweeps, sides.b, sides.x}, {.method = Method::gmres, .tolerance = 1e-7});
    EXPECT_FALSE(result.converged);
    EXPECT_EQ(result.stopped_by, "breakdown: a product with the matrix is not a finite number (right-hand side 1)");
    EXPECT_GT(result.residuals[1], 1e-7);
    for (const std::size_t other : {0, 2, 3}) EXPECT_LT(result.residuals[other], 1e-7) << other;
    EXPECT_EQ(result.relative_residual, result.residuals[1]);
}

TEST(Lockstep, a_shared_product_is_as_accurate_as_the_column_that_needs_most) {
    const Sides sides;
    const auto space = make_host_vectors(kUnknowns);
    DenseOperator sweeps(sides.matrix);
    std::vector<double> x(sides.b.size());
    std::vector<double> largest;
    SolveOptions options{.method = Method::gmres, .tolerance = 1e-6, .relaxed = true};
    options.progress = [&](const Progress& progress) {
        largest.push_back(progress.relative_residual);
        return true;
    };
    EXPECT_TRUE(solve(*space, {sweeps, sides.b, x}, options).converged);
    for (std::size_t i = 1; i + 2 < sweeps.accuracies.size(); ++i) {
        EXPECT_LE(sweeps.accuracies[i], 0.3 * std::min(1.0, 1e-6 / largest[i - 1]) * (1 + 1e-12));
    }
}

TEST(Lockstep, a_callback_ends_all_columns) {
    const Sides sides;
    const auto space = make_host_vectors(kUnknowns);
    for (const Method method : kMethods) {
        DenseOperator sweeps(sides.matrix);
        std::vector<double> x = sides.x;
        SolveOptions options{.method = method, .tolerance = 1e-10};
        options.progress = [](const Progress& progress) { return progress.iteration < 2; };
        const SolveResult result = solve(*space, {sweeps, sides.b, x}, options);
        EXPECT_EQ(result.iterations, 2);
        EXPECT_EQ(result.stopped_by.rfind("callback", 0), 0u) << result.stopped_by;
        EXPECT_EQ(result.residuals[2], 0) << "b is 0 there";
    }
}

std::string refusal(const SolveOptions& options, std::vector<double> b = {1, 2}, std::vector<double> x = {0, 0}) {
    const Dense matrix = well_conditioned(2, 1);
    DenseOperator sweeps(matrix);
    try {
        solve(*make_host_vectors(2), {sweeps, b, x}, options);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
        EXPECT_EQ(sweeps.applies(), 0) << "refused before anything is read";
        return error.info().cause;
    }
    return "";
}

TEST(Options, that_make_no_sense_are_refused_by_name) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(refusal({}), "");
    EXPECT_EQ(refusal({.tolerance = 0}), "tolerance is 0");
    EXPECT_EQ(refusal({.tolerance = 1}), "tolerance is 1");
    EXPECT_EQ(refusal({.tolerance = nan}), "tolerance is nan");
    EXPECT_EQ(refusal({.tolerance = -1e-5}), "tolerance is -1e-05");
    EXPECT_EQ(refusal({.max_iterations = 0}), "max_iterations is 0");
    EXPECT_EQ(refusal({.restart = -1}), "restart is -1");
    EXPECT_EQ(refusal({.relaxed_factor = 0}), "relaxed_factor is 0");
    EXPECT_EQ(refusal({.inner_tolerance = 1}), "inner_tolerance is 1");
    EXPECT_EQ(refusal({.inner_iterations = 0}), "inner_iterations is 0");
    EXPECT_EQ(refusal({.iterations_before = -1}), "iterations_before is -1");
    EXPECT_EQ(refusal({.sweeps_before = -2}), "sweeps_before is -2");
    EXPECT_EQ(refusal({.method = Method::bicgstab, .restart = 3}), "bicgstab does not restart");
    EXPECT_EQ(refusal({.method = Method::idr, .relaxed = true}), "relaxed cannot be used by idr");
    SolveOptions options{.method = Method::gcr};
    const Dense matrix = well_conditioned(2, 1);
    DenseOperator surrogate(matrix);
    options.surrogate = &surrogate;
    EXPECT_EQ(refusal(options), "surrogate cannot be used by gcr");
    options = {};
    options.checkpoint = [](std::span<const double>, const Progress&) {};
    EXPECT_EQ(refusal(options), "checkpoint_sweeps is 0");
}

TEST(Options, vectors_that_make_no_sense_are_refused_by_place) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(refusal({}, {1, 2, 3, nan}, {0, 0, 0, 0}), "b holds nan in row 1 of column 1");
    EXPECT_EQ(refusal({}, {1, 2}, {-1 / 0.0, 0}), "x holds -inf in row 0 of column 0");
    EXPECT_EQ(refusal({}, {1, 2, 3}, {0, 0, 0}), "b holds 3 numbers, the matrix has 2 rows");
    EXPECT_EQ(refusal({}, {}, {}), "b holds 0 numbers, the matrix has 2 rows");
    EXPECT_EQ(refusal({}, {1, 2}, {0}), "x holds 1 numbers, b 2");
    EXPECT_EQ(refusal({}, {1e200, 1}), "the norm of column 0 of b is beyond what a number can hold");
    EXPECT_EQ(refusal({}, {1e-200, 0}), "the norm of column 0 of b is beyond what a number can hold");
}

}  // namespace
}  // namespace penstock::hmatrix
