// The Laplace single layer tested by Galerkin: a symmetric matrix of integrals over pairs of triangles.
//
// Host and GPU compile this one source. The matrix is symmetric to the last bit, because a pair is always integrated in
// the same order. The rule depends on the distance of the centroids, in longest edges of the larger triangle:
// - the same triangle: the exact formula (Eibert and Hansen 1995)
// - below kApart: seven points on each quarter of the outer triangle, and the exact potential of the inner one; the
//   mean of both roles
// - below kSmooth: the same with seven points on the whole outer triangle
// - below kVerySmooth: seven points on each triangle
// - from there on: three points on each triangle
#pragma once

#include "hmatrix/kernel/laplace.hpp"

namespace penstock::hmatrix {

namespace detail {

// Bounds between the rules, in longest edges of the larger triangle.
constexpr double kApart = 1.5;      // closer triangles may touch
constexpr double kSmooth = 4;       // from here on both integrals use quadrature
constexpr double kVerySmooth = 24;  // from here on three points are enough

// Integral of 1 / |x - y| over x and y in the same triangle, in cubic metres.
PENSTOCK_HMATRIX_SHARED double self_energy(const Panel& p) {
    const double s = (p.base + p.length[0] + p.length[1]) / 2, a = area(p);
    // s - l for each edge of length l. For the longest edge this difference cancels in thin triangles, so Heron's
    // formula gives it from the other two.
    const double first = (p.base + p.length[1] - p.length[0]) / 2, second = (p.base + p.length[0] - p.length[1]) / 2;
    const double longest = a * a / (s * first * second);
    return 4 * a * a / 3 *
           (std::log(s / longest) / p.base + std::log(s / first) / p.length[0] + std::log(s / second) / p.length[1]);
}

// Converts the point (x, y) of the panel's plane to space.
PENSTOCK_HMATRIX_SHARED void place(const Panel& p, double x, double y, double* at) {
    for (int k = 0; k < 3; ++k) at[k] = p.origin[k] + x * p.axis[0][k] + y * p.axis[1][k];
}

// A triangle in the plane of a panel, by its corners.
struct PlaneTriangle {
    double x[3], y[3];
};

PENSTOCK_HMATRIX_SHARED PlaneTriangle whole(const Panel& p) { return {{0, p.base, p.apex[0]}, {0, 0, p.apex[1]}}; }

// One of the four congruent quarters of a triangle: the quarter at corner `which`, or the middle one for which = 3.
PENSTOCK_HMATRIX_SHARED PlaneTriangle quarter(const PlaneTriangle& t, int which) {
    PlaneTriangle cut{};
    for (int k = 0; k < 3; ++k) {
        const int a = which == 3 ? (k + 1) % 3 : which, b = which == 3 ? (k + 2) % 3 : k;
        cut.x[k] = (t.x[a] + t.x[b]) / 2;
        cut.y[k] = (t.y[a] + t.y[b]) / 2;
    }
    return cut;
}

// The seven quadrature points of a triangle in space, and their weights, which add up to 1.
struct Points {
    double at[7][3];
    double weight[7];
};

PENSTOCK_HMATRIX_SHARED void put(const Panel& p, const PlaneTriangle& t, Points& points, int which) {
    const double cx = (t.x[0] + t.x[1] + t.x[2]) / 3, cy = (t.y[0] + t.y[1] + t.y[2]) / 3;
    const double shift = which < 3 ? kInnerShift : kOuterShift;
    const double x = which == 6 ? cx : cx + shift * (t.x[which % 3] - cx);
    const double y = which == 6 ? cy : cy + shift * (t.y[which % 3] - cy);
    place(p, x, y, points.at[which]);
    points.weight[which] = which == 6 ? kCentroidWeight : which < 3 ? kInnerWeight : kOuterWeight;
}

PENSTOCK_HMATRIX_SHARED Points seven_points(const Panel& p, const PlaneTriangle& t) {
    Points points{};
    for (int k = 0; k < 7; ++k) put(p, t, points, k);
    return points;
}

// Mean over `outer` of the potential of `inner`. With `cut`, `outer` is divided into quarters.
PENSTOCK_HMATRIX_SHARED double mean_potential(const Panel& outer, const Panel& inner, bool cut) {
    double sum = 0;
    for (int piece = 0; piece < (cut ? 4 : 1); ++piece) {
        const Points points = seven_points(outer, cut ? quarter(whole(outer), piece) : whole(outer));
        for (int k = 0; k < 7; ++k) sum += points.weight[k] * potential(inner, points.at[k]);
    }
    return cut ? sum / 4 : sum;
}

PENSTOCK_HMATRIX_SHARED double inverse_distance(const double* a, const double* b) {
    const double x = a[0] - b[0], y = a[1] - b[1], z = a[2] - b[2];
    return inverse_root(x * x + y * y + z * z);
}

// Mean of 1 / |x - y| over both triangles, with seven points on each.
PENSTOCK_HMATRIX_SHARED double mean_by_seven(const Panel& a, const Panel& b) {
    const Points outer = seven_points(a, whole(a)), inner = seven_points(b, whole(b));
    double sum = 0;
    for (int i = 0; i < 7; ++i) {
        double row = 0;
        for (int j = 0; j < 7; ++j) row += inner.weight[j] * inverse_distance(outer.at[i], inner.at[j]);
        sum += outer.weight[i] * row;
    }
    return sum;
}

// Mean of 1 / |x - y| over both triangles, with three points on each, halfway from the centroid to the corners.
PENSTOCK_HMATRIX_SHARED double mean_by_three(const Panel& a, const Panel& b) {
    double at[2][3][3];
    for (int side = 0; side < 2; ++side) {
        const Panel& p = side == 0 ? a : b;
        const PlaneTriangle t = whole(p);
        const double cx = (t.x[1] + t.x[2]) / 3, cy = t.y[2] / 3;
        for (int k = 0; k < 3; ++k) place(p, (cx + t.x[k]) / 2, (cy + t.y[k]) / 2, at[side][k]);
    }
    double sum = 0;
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) sum += inverse_distance(at[0][i], at[1][j]);
    }
    return sum / 9;
}

PENSTOCK_HMATRIX_SHARED double mean_of_pair(const Panel& a, const Panel& b) {
    double ca[3], cb[3];
    place(a, (a.base + a.apex[0]) / 3, a.apex[1] / 3, ca);
    place(b, (b.base + b.apex[0]) / 3, b.apex[1] / 3, cb);
    const double h = a.base > b.base ? a.base : b.base, edges = 1 / (h * inverse_distance(ca, cb));
    if (edges >= kVerySmooth) return mean_by_three(a, b);
    if (edges >= kSmooth) return mean_by_seven(a, b);
    const bool cut = !(edges >= kApart);
    return (mean_potential(a, b, cut) / area(b) + mean_potential(b, a, cut) / area(a)) / 2;
}

}  // namespace detail

struct LaplaceGalerkin {
    const Panel* panels;

    PENSTOCK_HMATRIX_SHARED double operator()(std::int64_t row, std::int64_t column) const {
        const Panel &a = panels[row < column ? row : column], &b = panels[row < column ? column : row];
        if (row == column) return kInverse4Pi * detail::self_energy(a);
        return kInverse4Pi * detail::area(a) * detail::area(b) * detail::mean_of_pair(a, b);
    }
};

}  // namespace penstock::hmatrix
