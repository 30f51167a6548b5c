// GMRES: the residual is the smallest in its space, restarts, products of a chosen accuracy, and flexible outer
// iterations with an inner solve.
#include <gtest/gtest.h>

#include <vector>

#include "hmatrix/solve/dense_rig.hpp"
#include "hmatrix/solve/methods/least_squares.hpp"
#include "hmatrix/solve/solve.hpp"

namespace penstock::hmatrix {
namespace {

using Vector = std::vector<double>;

struct Solved {
    SolveResult result;
    Vector x;
    Vector accuracies;
};


Solved run(const Dense& matrix, const Vector& b, const SolveOptions& options, double wrong_by = 0) {
    const auto space = make_host_vectors(matrix.size);
    DenseOperator sweeps(matrix);
    sweeps.wrong_by = wrong_by;
    Solved made{.result = {}, .x = Vector(b.size()), .accuracies = {}};
    made.result = solve(*space, {sweeps, b, made.x}, options);
    made.accuracies = sweeps.accuracies;
    return made;
}

// min || b - A K y || / || b || over the span of b, A b, ..., A^(k-1) b, computed from orthonormal images.
Vector best_residuals(const Dense& matrix, const Vector& b, int count) {
    std::vector<Vector> images;
    Vector direction = b, left = b, best;
    for (int k = 0; k < count; ++k) {
        Vector image = matrix.times(direction);
        direction = image;
        const double length = norm_of(direction);
        for (double& value : direction) value /= length;
        for (int pass = 0; pass < 3; ++pass) {
            for (const Vector& other : images) {
                double along = 0;
                for (std::size_t i = 0; i < b.size(); ++i) along += other[i] * image[i];
                for (std::size_t i = 0; i < b.size(); ++i) image[i] -= along * other[i];
            }
        }
        const double size = norm_of(image);
        for (double& value : image) value /= size;
        double along = 0;
        for (std::size_t i = 0; i < b.size(); ++i) along += image[i] * left[i];
        for (std::size_t i = 0; i < b.size(); ++i) left[i] -= along * image[i];
        images.push_back(image);
        best.push_back(norm_of(left) / norm_of(b));
    }
    return best;
}

TEST(Gmres, residual_is_the_least_squares_optimum_and_never_grows) {
    for (const bool symmetric : {false, true}) {
        const Dense matrix = conditioned(24, 20, 1, symmetric);
        const Vector b = random_numbers(24, 2);
        const Solved found = run(matrix, b, {.method = Method::gmres, .tolerance = 1e-10});
        const Vector best = best_residuals(matrix, b, 8);
        for (std::size_t i = 0; i < best.size(); ++i) EXPECT_NEAR(found.result.history[i], best[i], 1e-8) << i;
        for (std::size_t i = 1; i < found.result.history.size(); ++i) {
            EXPECT_LE(found.result.history[i], found.result.history[i - 1]);
        }
        EXPECT_TRUE(found.result.converged);
        EXPECT_LE(found.result.iterations, 24) << "as many as there are unknowns";
        EXPECT_EQ(found.result.sweeps, found.result.iterations) << "a first guess of 0 costs no product";
    }
}

TEST(Gmres, restarted_costs_no_product_for_its_residual_and_comes_to_the_same_answer) {
    const Dense matrix = single_layer(200);
    const Vector b = random_numbers(200, 3);
    const Solved full = run(matrix, b, {.method = Method::gmres, .tolerance = 1e-8});
    const Solved restarted = run(matrix, b, {.method = Method::gmres, .tolerance = 1e-8, .restart = 10});
    EXPECT_TRUE(restarted.result.converged);
    EXPECT_GT(restarted.result.iterations, full.result.iterations);
    EXPECT_EQ(restarted.result.sweeps, restarted.result.iterations);
    EXPECT_LT(relative_residual(matrix, b, restarted.x), 1e-8);
    for (std::size_t i = 1; i < restarted.result.history.size(); ++i) {
        EXPECT_LE(restarted.result.history[i], restarted.result.history[i - 1] * (1 + 1e-12));
    }
}

TEST(Gmres, a_basis_of_many_blocks_stays_orthogonal) {
    const Dense matrix = conditioned(150, 1e8, 4, true);
    const Vector b = matrix.times(random_numbers(150, 5));
    const Solved found = run(matrix, b, {.method = Method::gmres, .tolerance = 1e-11});
    EXPECT_TRUE(found.result.converged) << found.result.stopped_by;
    EXPECT_NEAR(found.result.believed_residual / found.result.relative_residual, 1, 0.05);
}

TEST(Gmres, stagnation_is_named) {
    Dense shift(12);  // restarted GMRES makes no progress on it
    for (int i = 0; i < 12; ++i) shift.at((i + 1) % 12, i) = 1;
    Vector b(12);
    b[0] = 1;
    const Solved stuck = run(shift, b, {.method = Method::gmres, .restart = 5});
    EXPECT_FALSE(stuck.result.converged);
    EXPECT_EQ(stuck.result.stopped_by.rfind("stagnation", 0), 0u) << stuck.result.stopped_by;
    EXPECT_EQ(stuck.result.iterations, 5);
    EXPECT_TRUE(run(shift, b, {.method = Method::gmres}).result.converged);
}

// Products that use the whole permitted error (Frobenius norm) cost more sweeps. Products that use a sixth of it, as
// those of stored matrices do, cost few more.
TEST(Gmres, relaxed_meets_the_tolerance_with_products_as_wrong_as_it_allowed) {
    const Dense easy = well_conditioned(250, 13), hard = single_layer(250);
    const Vector b = random_numbers(250, 6);
    for (const double tolerance : {1e-4, 1e-6, 1e-9}) {
        for (const Dense* matrix : {&easy, &hard}) {
            SolveOptions options{.method = Method::gmres, .tolerance = tolerance};
            const std::int64_t exact = run(*matrix, b, options).result.sweeps;
            options.relaxed = true;
            for (const double wrong_by : {1.0, 1.0 / 6}) {
                const Solved found = run(*matrix, b, options, wrong_by);
                EXPECT_TRUE(found.result.converged) << found.result.stopped_by;
                EXPECT_LT(relative_residual(*matrix, b, found.x), tolerance * (1 + 1e-9));
                EXPECT_LE(found.result.sweeps, wrong_by == 1 ? 3 * exact : exact + 7);
                ASSERT_GE(found.accuracies.size(), 3u);
                EXPECT_DOUBLE_EQ(found.accuracies[0], 0.3 * tolerance) << "the first product must be the best";
                EXPECT_NEAR(found.accuracies[2], 0.3 * tolerance / found.result.history[1], 1e-12);
                EXPECT_EQ(found.accuracies.back(), 0) << "the check is exact";
            }
        }
    }
}

TEST(Gmres, products_worse_than_asked_for_are_not_called_solved) {
    const Dense matrix = single_layer(100);
    const auto space = make_host_vectors(100);
    DenseOperator sweeps(matrix);
    Vector x(100);
    const Vector noise = random_numbers(100 * 200, 8);
    // Each product has an error of a hundredth in another direction, including the product of the check.
    sweeps.after_apply = [&](std::int64_t applies, double* y) {
        for (std::int64_t i = 0; i < 100; ++i) y[i] += 1e-3 * noise[(applies % 200) * 100 + i];
    };
    const SolveResult result = solve(*space, {sweeps, random_numbers(100, 9), x}, {.method = Method::gmres});
    EXPECT_FALSE(result.converged);
    EXPECT_EQ(result.stopped_by.rfind("stagnation", 0), 0u) << result.stopped_by;
    EXPECT_GT(result.relative_residual, 1e-4);
}

// A with entries rounded to few digits, like a surrogate in little memory.
Dense rounded(const Dense& matrix, double step) {
    Dense made = matrix;
    for (double& value : made.values) {
        const double size = std::pow(2.0, std::floor(std::log2(std::abs(value)))) * step;
        value = std::round(value / size) * size;
    }
    return made;
}

TEST(Fgmres, with_a_surrogate_needs_few_sweeps) {
    const Dense matrix = single_layer(300);
    const Vector b = random_numbers(300, 10);
    const Dense rough = rounded(matrix, 0.125), fine = rounded(matrix, 1e-3);
    DenseOperator rough_surrogate(rough), fine_surrogate(fine);
    const std::int64_t alone = run(matrix, b, {.method = Method::gmres, .tolerance = 1e-6}).result.sweeps;
    SolveOptions options{.method = Method::fgmres, .tolerance = 1e-6};
    options.surrogate = &rough_surrogate;
    const Solved with_rough = run(matrix, b, options);
    options.surrogate = &fine_surrogate;
    options.inner_tolerance = 1e-3;
    const Solved with_fine = run(matrix, b, options);
    EXPECT_TRUE(with_rough.result.converged);
    EXPECT_TRUE(with_fine.result.converged);
    EXPECT_LE(with_rough.result.sweeps, 8);
    EXPECT_LE(with_fine.result.sweeps, 3);
    EXPECT_GE(alone, 15);
    EXPECT_EQ(with_fine.result.inner_iterations, fine_surrogate.applies());
    EXPECT_LT(relative_residual(matrix, b, with_fine.x), 1e-6);

    options.relaxed = true;
    EXPECT_LE(run(matrix, b, options, 1).result.sweeps, 4) << "inexact products outside, too";
}

TEST(Fgmres, the_preconditioner_serves_the_inner_solve) {
    Dense matrix = single_layer(200), scaling(200);
    for (std::int64_t j = 0; j < 200; ++j) {
        const double scale = std::pow(10.0, static_cast<double>(j % 3));
        for (std::int64_t i = 0; i < 200; ++i) matrix.at(i, j) *= scale;
        scaling.at(j, j) = 1 / scale;
    }
    const Dense rough = rounded(matrix, 0.03);
    DenseOperator surrogate(rough), preconditioner(scaling);
    SolveOptions options{.method = Method::fgmres, .tolerance = 1e-6, .inner_iterations = 200, .surrogate = &surrogate};
    const Vector b = random_numbers(200, 11);
    const Solved plain = run(matrix, b, options);
    options.preconditioner = &preconditioner;
    const Solved helped = run(matrix, b, options);
    EXPECT_TRUE(plain.result.converged && helped.result.converged);
    EXPECT_LT(2 * helped.result.inner_iterations, plain.result.inner_iterations);
    EXPECT_LE(helped.result.sweeps, 7);
}

TEST(Fgmres, a_surrogate_that_misleads_costs_few_sweeps_and_not_the_answer) {
    const Dense matrix = single_layer(200), other = conditioned(200, 1e6, 21);  // unrelated to `matrix`
    const Vector b = random_numbers(200, 14);
    DenseOperator surrogate(other);
    SolveOptions options{.method = Method::fgmres, .tolerance = 1e-8, .surrogate = &surrogate};
    const Solved misled = run(matrix, b, options);
    const std::int64_t alone = run(matrix, b, {.method = Method::gmres, .tolerance = 1e-8}).result.sweeps;
    EXPECT_TRUE(misled.result.converged) << misled.result.stopped_by;
    EXPECT_LE(misled.result.sweeps, 2 * alone);
    EXPECT_LT(relative_residual(matrix, b, misled.x), 1e-8);
}

TEST(Fgmres, a_surrogate_of_no_use_is_named) {
    const Dense matrix = single_layer(20), nothing(20);
    DenseOperator surrogate(nothing);
    SolveOptions options{.surrogate = &surrogate};
    EXPECT_EQ(run(matrix, random_numbers(20, 12), options).result.stopped_by,
              "breakdown: the surrogate is singular, it maps a residual to nothing");
    surrogate.after_apply = [](std::int64_t, double* y) { y[0] = std::nan(""); };
    EXPECT_EQ(run(matrix, random_numbers(20, 12), options).result.stopped_by,
              "breakdown: a product with the surrogate is not a finite number");
}

TEST(LeastSquares, rotations_keep_the_residual_of_a_small_problem) {
    LeastSquares small(2);
    ASSERT_TRUE(small.add(Vector{1}, 1));
    EXPECT_NEAR(small.residual(), std::sqrt(2.0), 1e-15);
    ASSERT_TRUE(small.add(Vector{1, 3}, 0.5));
    const Vector y = small.solve(), left = small.residual_vector();
    EXPECT_NEAR(left[0], 2 - y[0] - y[1], 1e-15);
    EXPECT_NEAR(left[1], -y[0] - 3 * y[1], 1e-15);
    EXPECT_NEAR(left[2], -0.5 * y[1], 1e-15);
    EXPECT_NEAR(norm_of(left), small.residual(), 1e-15);
    EXPECT_NEAR(left[0] + left[1], 0, 1e-15) << "orthogonal to the first column";

    LeastSquares twice(1);
    ASSERT_TRUE(twice.add(Vector{0}, 1));
    EXPECT_FALSE(twice.add(Vector{0, 0}, 0)) << "a column of nothing adds nothing";
    EXPECT_EQ(twice.size(), 1);
}

}  // namespace
}  // namespace penstock::hmatrix
