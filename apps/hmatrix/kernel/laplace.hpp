// The Laplace single layer on flat triangles: the potential of a uniform charge on each triangle.
//
// Host compilers (g++, clang) and nvcc compile this one source, so it is C++17. potential() is exact in exact
// arithmetic; in double precision its relative error is about 1e-12. Entries include the factor 1 / (4 pi). The unknown
// is the charge density divided by eps0, in V/m:
//     collocation: the matrix is in metres, the right-hand side is the potential in volts;
//     Galerkin:    the matrix is in cubic metres, the right-hand side is potential times area of the triangle.
// With both, C / (4 pi eps0) of a conductor at 1 V is the sum of unknown times area, divided by 4 pi, in metres.
#pragma once

#include <cmath>
#include <cstdint>

#include "hmatrix/kernel/panel.hpp"
#include "penstock/host_device.hpp"

#define PENSTOCK_HMATRIX_SHARED PENSTOCK_HOST_DEVICE inline

namespace penstock::hmatrix {

constexpr double kInverse4Pi = 0.079577471545947667884;

namespace detail {

// 1 / sqrt(x) for x > 0. A GPU has one fast instruction for it, and is slow at division and root.
PENSTOCK_HMATRIX_SHARED double inverse_root(double x) {
#if defined(__CUDA_ARCH__)
    return rsqrt(x);
#else
    return 1 / std::sqrt(x);
#endif
}

// An observer in the coordinate frame of a panel.
struct Seen {
    double x, y, height;
};

PENSTOCK_HMATRIX_SHARED Seen seen(const Panel& p, const double* at) {
    const double dx = at[0] - p.origin[0], dy = at[1] - p.origin[1], dz = at[2] - p.origin[2];
    return {dx * p.axis[0][0] + dy * p.axis[0][1] + dz * p.axis[0][2],
            dx * p.axis[1][0] + dy * p.axis[1][1] + dz * p.axis[1][2],
            dx * p.axis[2][0] + dy * p.axis[2][1] + dz * p.axis[2][2]};
}

// Area in square metres.
PENSTOCK_HMATRIX_SHARED double area(const Panel& p) { return p.base * p.apex[1] / 2; }

// An edge relative to the observer: the signed distance of its line in the plane (positive outward), and the positions
// of its two ends along that line.
struct Edge {
    double out, from, to;
};

// Contribution of an edge: out * ln[(Rb + to) / (Ra + from)], where Ra and Rb are the distances of its ends. For a
// negative position l, R + l would cancel; the code uses (out^2 + h^2) / (R - l) instead. An observer on the edge or on
// its line gets 0.
PENSTOCK_HMATRIX_SHARED double edge_term(const Edge& e, double hh, double ra, double rb) {
    const double squared = e.out * e.out + hh, a = ra + std::fabs(e.from), b = rb + std::fabs(e.to);
    const double above = e.to > 0 ? b : a;
    const double below = e.from < 0 ? (e.to > 0 ? squared / a : b) : a;
    return squared > 0 && below > 0 ? e.out * std::log(above / below) : 0.0;
}

// Radon's rule with seven points, of degree 5: the weights of the centroid and of two triples of points. A shift is the
// position of a point on the vector from centroid to corner, as a multiple of that vector.
constexpr double kCentroidWeight = 0.225;
constexpr double kInnerWeight = 0.13239415278850618074, kInnerShift = -0.41042619231534477;
constexpr double kOuterWeight = 0.12593918054482715260, kOuterShift = 0.69614047802963099;

// Potential by Radon's rule. (x, y) points from the centroid to the observer in the panel's plane; `squared` is the
// square of their distance in space. The relative error is about 1e-4 times the sixth power of longest edge over
// distance.
PENSTOCK_HMATRIX_SHARED double far_potential(const Panel& p, double x, double y, double squared) {
    const double cx = (p.base + p.apex[0]) / 3, cy = p.apex[1] / 3;
    const double corner_x[3] = {-cx, p.base - cx, p.apex[0] - cx}, corner_y[3] = {-cy, -cy, p.apex[1] - cy};
    double inner = 0, outer = 0;
    for (int k = 0; k < 3; ++k) {
        const double along = 2 * (corner_x[k] * x + corner_y[k] * y);
        const double size = corner_x[k] * corner_x[k] + corner_y[k] * corner_y[k];
        inner += inverse_root(squared + kInnerShift * (kInnerShift * size - along));
        outer += inverse_root(squared + kOuterShift * (kOuterShift * size - along));
    }
    return area(p) * (kCentroidWeight / std::sqrt(squared) + kInnerWeight * inner + kOuterWeight * outer);
}

// The logarithms of Wilton et al. (1984); the solid angle of van Oosterom and Strackee (1983) replaces their arc
// tangents.
PENSTOCK_HMATRIX_SHARED double exact_potential(const Panel& p, const Seen& from) {
    const double hh = from.height * from.height;
    const double x0 = -from.x, x1 = p.base - from.x, x2 = p.apex[0] - from.x, y0 = -from.y, y2 = p.apex[1] - from.y;
    const double r0 = std::sqrt(x0 * x0 + y0 * y0 + hh);
    const double r1 = std::sqrt(x1 * x1 + y0 * y0 + hh);
    const double r2 = std::sqrt(x2 * x2 + y2 * y2 + hh);
    const double out1 = x1 * p.ty[0] - y0 * p.tx[0], lm1 = x1 * p.tx[0] + y0 * p.ty[0];
    const double out2 = x2 * p.ty[1] - y2 * p.tx[1], lm2 = x2 * p.tx[1] + y2 * p.ty[1];
    const double logs = edge_term({-y0, x0, x1}, hh, r0, r1) +
                        edge_term({out1, lm1, lm1 + p.length[0]}, hh, r1, r2) +
                        edge_term({out2, lm2, lm2 + p.length[1]}, hh, r2, r0);
    const double height = std::fabs(from.height), triple = p.base * p.apex[1] * height;
    const double facing = r0 * r1 * r2 + (x0 * x1 + y0 * y0 + hh) * r2 + (x1 * x2 + y0 * y2 + hh) * r0 +
                          (x2 * x0 + y2 * y0 + hh) * r1;
    return logs - (height > 0 ? 2 * height * std::atan2(triple, facing) : 0.0);
}

}  // namespace detail

// Integral over the panel of dS / |x - y|, in metres. The observer x may lie anywhere, also on the panel, its edges and
// corners. Beyond the distance sqrt(reach2) the function uses the far rule, which is faster there and more accurate
// than the exact sum.
PENSTOCK_HMATRIX_SHARED double potential(const Panel& p, const double* at) {
    const detail::Seen from = detail::seen(p, at);
    const double x = from.x - (p.base + p.apex[0]) / 3, y = from.y - p.apex[1] / 3;
    const double squared = x * x + y * y + from.height * from.height;
    return squared > p.reach2 ? detail::far_potential(p, x, y, squared) : detail::exact_potential(p, from);
}

// Potential of panel `column` at the centroid of panel `row`: the matrix of HACApK's surface charge problem.
struct LaplaceCollocation {
    const Panel* panels;
    const double* centroids;  // x, y, z of each triangle's centroid

    PENSTOCK_HMATRIX_SHARED double operator()(std::int64_t row, std::int64_t column) const {
        return kInverse4Pi * potential(panels[column], centroids + 3 * row);
    }
};

}  // namespace penstock::hmatrix
