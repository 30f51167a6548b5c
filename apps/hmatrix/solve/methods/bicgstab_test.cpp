// Compares BiCGSTAB with a second implementation, written directly from the published recurrences with HACApK's
// stopping rule.
#include <gtest/gtest.h>

#include <vector>

#include "hmatrix/solve/dense_rig.hpp"
#include "hmatrix/solve/solve.hpp"

namespace penstock::hmatrix {
namespace {

using Vector = std::vector<double>;

double dot_of(const Vector& x, const Vector& y) {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
    return sum;
}

struct Reference {
    Vector x;
    int iterations = 0;
    int products = 1;
    Vector history;
};

// Tests the residual at the head of each iteration only.
Reference plain_bicgstab(const Dense& a, const Vector& b, Vector x, double tolerance) {
    const std::size_t n = b.size();
    Vector r = a.times(x), p(n), v(n), s(n);
    for (std::size_t i = 0; i < n; ++i) r[i] = b[i] - r[i];
    const Vector shadow = r;
    double alpha = 0, beta = 0, omega = 0;
    Reference made;
    while (std::sqrt(dot_of(r, r)) / std::sqrt(dot_of(b, b)) >= tolerance) {
        for (std::size_t i = 0; i < n; ++i) p[i] = r[i] + beta * (p[i] - omega * v[i]);
        v = a.times(p);
        const double rho = dot_of(shadow, r);
        alpha = rho / dot_of(shadow, v);
        for (std::size_t i = 0; i < n; ++i) s[i] = r[i] - alpha * v[i];
        const Vector t = a.times(s);
        omega = dot_of(t, s) / dot_of(t, t);
        for (std::size_t i = 0; i < n; ++i) x[i] += alpha * p[i] + omega * s[i];
        for (std::size_t i = 0; i < n; ++i) r[i] = s[i] - omega * t[i];
        beta = alpha / omega * dot_of(shadow, r) / rho;
        ++made.iterations;
        made.products += 2;
        made.history.push_back(std::sqrt(dot_of(r, r)) / std::sqrt(dot_of(b, b)));
    }
    made.x = x;
    return made;
}

void expect_the_same(const Dense& matrix, const Vector& b, const Vector& guess, double tolerance) {
    const Reference expected = plain_bicgstab(matrix, b, guess, tolerance);
    const auto space = make_host_vectors(matrix.size);
    DenseOperator sweeps(matrix);
    Vector x = guess;
    const SolveResult found = solve(*space, {sweeps, b, x}, {.method = Method::bicgstab, .tolerance = tolerance});
    ASSERT_TRUE(found.converged);
    EXPECT_EQ(found.iterations, expected.iterations);
    EXPECT_EQ(found.sweeps, expected.products) << "2 an iteration and 1 for the first residual";
    EXPECT_EQ(sweeps.applies(), expected.products + 1) << "and one for the check, which is not counted";
    ASSERT_EQ(found.history.size(), expected.history.size());
    for (std::size_t i = 0; i < found.history.size(); ++i) {
        EXPECT_NEAR(found.history[i] / expected.history[i], 1, 0.01) << "iteration " << i + 1;
    }
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], expected.x[i], 1e-4 * norm_of(expected.x));
}

// Rounding errors of the sums grow along the recurrences, so the test uses problems on which they stay small.
TEST(BiCgStab, makes_the_iterations_of_a_plain_implementation) {
    for (const bool symmetric : {false, true}) {
        expect_the_same(well_conditioned(100, 1, symmetric), random_numbers(100, 2), Vector(100), 1e-8);
    }
    expect_the_same(conditioned(40, 100, 5, true), random_numbers(40, 6), Vector(40), 1e-3);
    Vector b(200, 1.0);
    for (std::size_t i = 0; i < 100; ++i) b[i] = -1;
    for (const double tolerance : {1e-2, 1e-3, 1e-4}) expect_the_same(single_layer(200), b, Vector(200), tolerance);
    expect_the_same(single_layer(200), b, Vector(200, 0.5), 1e-4);
    expect_the_same(single_layer(200), random_numbers(200, 3), Vector(200), 1e-3);
}

}  // namespace
}  // namespace penstock::hmatrix
