// Compares Galerkin entries with nested adaptive quadrature, and tests that the matrix is symmetric.
#include "hmatrix/kernel/galerkin.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "hmatrix/kernel/problem.hpp"
#include "hmatrix/kernel/test_quadrature.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

using test::Corners;

Mesh mesh_of(const std::vector<Corners>& all) {
    Mesh mesh;
    for (const Corners& t : all) {
        const auto first = static_cast<std::int32_t>(mesh.vertices.size());
        mesh.vertices.insert(mesh.vertices.end(), t.begin(), t.end());
        mesh.triangles.push_back({first, first + 1, first + 2});
    }
    return mesh;
}

double entry(const Corners& a, const Corners& b) { return LaplaceProblem(mesh_of({a, b})).galerkin()(0, 1); }

// The outer integral by adaptive bisection over the exact potential, which laplace_test.cpp tests.
double nested(const Corners& a, const Corners& b, double relative) {
    const Panel inner = panels(mesh_of({b}))[0];
    const auto f = [&](const Point& p) { return kInverse4Pi * potential(inner, &p.x); };
    return test::integrate(a, relative * f(test::mix(a, 1. / 3, 1. / 3, 1. / 3)) * test::area_of(a), f);
}

Corners moved(Corners t, double x, double y, double z) {
    for (Point& p : t) p = {p.x + x, p.y + y, p.z + z};
    return t;
}

const Corners kPlain{{{0, 0, 0}, {1, 0.1, 0}, {0.3, 0.8, 0.2}}};
const Corners kOther{{{0, 0, 0}, {0.7, -0.2, 0.5}, {-0.2, 0.6, 0.4}}};

TEST(LaplaceGalerkin, self_term_is_the_integral_over_the_triangle_twice) {
    for (const Corners& t : {kPlain, kOther, Corners{{{0, 0, 0}, {1, 0, 0}, {0.4, 0.03, 0}}}}) {
        const LaplaceProblem problem(mesh_of({t}));
        EXPECT_NEAR(problem.galerkin()(0, 0) / nested(t, t, 1e-13), 1, 1e-5);
    }
}

TEST(LaplaceGalerkin, collocation_overestimates_the_self_term_by_a_fifth) {
    const LaplaceProblem problem(mesh_of({kPlain}));
    const double ratio = problem.collocation()(0, 0) * problem.areas()[0] / problem.galerkin()(0, 0);
    EXPECT_GT(ratio, 1.15);
    EXPECT_LT(ratio, 1.3);
}

TEST(LaplaceGalerkin, self_term_of_a_needle_does_not_cancel) {
    // The apex is above the middle of a base of length 1. The expected value has the formula's leading terms for a
    // small height h, with s - base = h^2 up to rounding.
    const double h = 1e-7;
    const LaplaceProblem problem(mesh_of({{{{0, 0, 0}, {1, 0, 0}, {0.5, h, 0}}}}));
    const double area = h / 2, sum = std::log(1 / (h * h)) + 2 * 2 * std::log(2.0);
    EXPECT_NEAR(problem.galerkin()(0, 0) / (kInverse4Pi * 4 * area * area / 3 * sum), 1, 1e-9);
}

struct Pair {
    const char* name;
    Corners a, b;
    double tolerance;
};

TEST(LaplaceGalerkin, pairs_equal_nested_quadrature) {
    const Corners folded{{kPlain[0], kPlain[1], {0.5, -0.5, 0.6}}}, flat{{kPlain[1], kPlain[0], {0.6, -0.7, -0.2}}};
    const std::vector<Pair> pairs = {
        {"a shared edge, folded", kPlain, folded, 5e-4},
        {"a shared edge, flat", kPlain, flat, 2e-3},
        {"a shared corner", kPlain, {{{0, 0, 0}, {-0.5, -0.4, 0.3}, {-0.1, -0.9, 0}}}, 5e-4},
        {"crossing", kPlain, moved(kOther, 0.1, 0.1, -0.3), 5e-3},
        {"a gap of a tenth", kPlain, moved(kPlain, 0, 0, 0.1), 5e-4},
        {"two edges away", kPlain, moved(kOther, 2, 0.5, 0.4), 3e-6},
        {"three and a half", kPlain, moved(kOther, -1, 3.2, 0.8), 1e-7},
        {"four and a half", kPlain, moved(kOther, 4.2, -1, 1.4), 1e-7},
        {"ten", kPlain, moved(kOther, 3, 6, -7), 1e-9},
        {"thirty", kPlain, moved(kOther, 20, -12, 18), 1e-6},
        {"a thousand", kPlain, moved(kOther, 800, 500, -300), 1e-9},
    };
    for (const Pair& pair : pairs) {
        EXPECT_NEAR(entry(pair.a, pair.b) / nested(pair.a, pair.b, 1e-11), 1, pair.tolerance) << pair.name;
    }
}

TEST(LaplaceGalerkin, is_symmetric_to_the_last_bit) {
    std::mt19937_64 random(7);
    const auto number = [&](double size) { return size * (static_cast<double>(random() % 2001) / 1000 - 1); };
    std::vector<Corners> all;
    for (int i = 0; i < 40; ++i) {
        const Corners t = moved(i % 2 == 0 ? kPlain : kOther, number(15), number(15), number(2));
        all.push_back(t);
    }
    const LaplaceProblem problem(mesh_of(all));
    const LaplaceGalerkin matrix = problem.galerkin();
    for (int i = 0; i < 40; ++i) {
        for (int j = 0; j < i; ++j) ASSERT_EQ(matrix(i, j), matrix(j, i)) << i << ' ' << j;
    }
    const LaplaceCollocation other = problem.collocation();
    EXPECT_NE(other(0, 1) * problem.areas()[0], other(1, 0) * problem.areas()[1]) << "collocation is not";
}

TEST(LaplaceProblem, sums_charge_and_refuses_another_number_of_densities) {
    const LaplaceProblem problem(mesh_of({kPlain, kOther}));
    EXPECT_DOUBLE_EQ(problem.capacitance_over_4pi_eps0({2, 3}),
                     kInverse4Pi * (2 * problem.areas()[0] + 3 * problem.areas()[1]));
    EXPECT_THROW(problem.capacitance_over_4pi_eps0({1}), Error);
}

TEST(LaplaceProblem, refuses_a_triangle_of_no_area_by_its_number) {
    try {
        LaplaceProblem(mesh_of({kPlain, {{{0, 0, 0}, {1, 1, 1}, {2, 2, 2}}}}));
        FAIL() << "accepted";
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("triangle 1 has no area"), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace penstock::hmatrix
