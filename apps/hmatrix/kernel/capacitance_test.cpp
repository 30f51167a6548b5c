// The physics: capacitances of bodies with known values, solved by dense elimination.
//
// The expected numbers are those of centroid collocation on exactly these meshes. They tell a wrong integral from a
// right one; the exact value of the body would not, because a coarse mesh deviates from it. Errors of cubes are
// absolute.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "hmatrix/geometry/shapes.hpp"
#include "hmatrix/kernel/problem.hpp"

namespace penstock::hmatrix {
namespace {

// Solves a x = b by Gaussian elimination with row pivots. `a` is row-major; it is overwritten.
std::vector<double> solve_dense(std::vector<double> a, std::vector<double> b) {
    const std::size_t n = b.size();
    for (std::size_t k = 0; k < n; ++k) {
        std::size_t pivot = k;
        for (std::size_t i = k + 1; i < n; ++i) {
            if (std::fabs(a[i * n + k]) > std::fabs(a[pivot * n + k])) pivot = i;
        }
        if (pivot != k) {
            std::swap_ranges(a.begin() + k * n, a.begin() + (k + 1) * n, a.begin() + pivot * n);
            std::swap(b[k], b[pivot]);
        }
        for (std::size_t i = k + 1; i < n; ++i) {
            const double factor = a[i * n + k] / a[k * n + k];
            double* row = &a[i * n];
            const double* upper = &a[k * n];
            for (std::size_t j = k + 1; j < n; ++j) row[j] -= factor * upper[j];
            b[i] -= factor * b[k];
        }
    }
    for (std::size_t k = n; k-- > 0;) {
        for (std::size_t j = k + 1; j < n; ++j) b[k] -= a[k * n + j] * b[j];
        b[k] /= a[k * n + k];
    }
    return b;
}

template <class Functor>
std::vector<double> dense(const Functor& entry, std::int64_t n) {
    std::vector<double> a;
    a.reserve(static_cast<std::size_t>(n * n));
    for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = 0; j < n; ++j) a.push_back(entry(i, j));
    }
    return a;
}

double by_collocation(const Mesh& mesh) {
    const LaplaceProblem problem(mesh);
    const std::vector<double> one(mesh.triangles.size(), 1.0);
    return problem.capacitance_over_4pi_eps0(solve_dense(dense(problem.collocation(), mesh.unknowns()), one));
}

double by_galerkin(const Mesh& mesh) {
    const LaplaceProblem problem(mesh);
    return problem.capacitance_over_4pi_eps0(
        solve_dense(dense(problem.galerkin(), mesh.unknowns()), problem.areas()));
}

constexpr double kUnitCube = 0.6606782;

TEST(Capacitance, of_the_sphere_converges_by_the_square_of_the_edge) {
    EXPECT_NEAR(by_collocation(sphere(80)) - 1, -4.9e-2, 5e-4);
    EXPECT_NEAR(by_collocation(sphere(320)) - 1, -1.30e-2, 5e-5);
    EXPECT_NEAR(by_collocation(sphere(1280)) - 1, -3.32e-3, 1e-5);
}

TEST(Capacitance, is_proportional_to_size) {
    EXPECT_NEAR(by_collocation(sphere(80, 1e-3)) / by_collocation(sphere(80)), 1e-3, 1e-14);
}

TEST(Capacitance, of_the_even_cube) {
    EXPECT_NEAR(by_collocation(cube(192, {.graded = false})) - kUnitCube, -7.4e-3, 5e-5);
    EXPECT_NEAR(by_collocation(cube(768, {.graded = false})) - kUnitCube, -3.0e-3, 5e-5);
}

TEST(Capacitance, of_the_graded_cube_converges_by_the_square) {
    EXPECT_NEAR(by_collocation(cube(192)) - kUnitCube, -3.5e-3, 5e-5);
    EXPECT_NEAR(by_collocation(cube(768)) - kUnitCube, -6.4e-4, 5e-6);
}

TEST(Capacitance, by_galerkin_is_closer) {
    const double sphere_error = by_galerkin(sphere(320)) - 1, cube_error = by_galerkin(cube(192)) - kUnitCube;
    EXPECT_NEAR(sphere_error, -1.3e-2, 2e-3) << "the error of the inscribed body itself";
    EXPECT_LT(std::fabs(cube_error), 3.5e-3);
    EXPECT_LT(cube_error, 0) << "Galerkin's energy is a lower bound of capacitance";
}

// C / (4 pi eps0) of one of two mirrored spheres, once from each half of the charge.
std::pair<double, double> mirrored(std::int64_t triangles) {
    const Mesh mesh = mirrored_spheres(triangles);
    const LaplaceProblem problem(mesh);
    const auto density = solve_dense(dense(problem.collocation(), mesh.unknowns()), mesh.values);
    const std::size_t half = density.size() / 2;
    double lower = 0, upper = 0;
    for (std::size_t i = 0; i < half; ++i) {
        lower += density[i] * problem.areas()[i];
        upper += density[half + i] * problem.areas()[half + i];
        EXPECT_NEAR(density[i], -density[half + i], 1e-10);
    }
    return {kInverse4Pi * lower, kInverse4Pi * upper};
}

// C / (4 pi eps0) of a sphere of radius R whose centre is at height h above a plane, by the method of images: R sinh(u)
// times the sum over n of 1 / sinh(n u), with cosh(u) = h / R.
double above_plane(double radius, double height) {
    const double u = std::acosh(height / radius);
    double series = 0;
    for (int n = 1; n < 40; ++n) series += radius * std::sinh(u) / std::sinh(n * u);
    return series;
}

TEST(Capacitance, mirrored_spheres_carry_equal_and_opposite_charge_that_converges_to_the_image_series) {
    const auto [lower, upper] = mirrored(640);
    EXPECT_NEAR(lower / upper, -1, 1e-12);
    const double coarse = upper / above_plane(0.25, 0.5) - 1, fine = mirrored(1440).second / above_plane(0.25, 0.5) - 1;
    EXPECT_NEAR(coarse / fine, 1440.0 / 640, 0.1) << coarse << ' ' << fine;
    EXPECT_LT(std::fabs(fine), 1e-2);
}

}  // namespace
}  // namespace penstock::hmatrix
