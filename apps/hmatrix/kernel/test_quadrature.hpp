// Numerical integration over a triangle, independent of the formulas under test.
//
// There are two methods. Adaptive bisection with seven points a piece serves integrands that are smooth enough. For the
// potential at any observer, an integral along the edges in long double is used: in polar coordinates about the
// observer's foot the radius integrates in closed form. Each edge leaves P times the integral of ds / (R(s) + |h|),
// which is never singular.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "hmatrix/geometry/mesh.hpp"

namespace penstock::hmatrix::test {

using Corners = std::array<Point, 3>;

inline Point mix(const Corners& t, double a, double b, double c) {
    return {a * t[0].x + b * t[1].x + c * t[2].x, a * t[0].y + b * t[1].y + c * t[2].y,
            a * t[0].z + b * t[1].z + c * t[2].z};
}

inline double apart(const Point& p, const Point& q) { return std::hypot(p.x - q.x, p.y - q.y, p.z - q.z); }

inline double area_of(const Corners& t) {
    Mesh mesh;
    mesh.vertices.assign(t.begin(), t.end());
    mesh.triangles = {{0, 1, 2}};
    return areas(mesh)[0];
}

using Integrand = std::function<double(const Point&)>;

inline double seven_points(const Corners& t, double area, const Integrand& f) {
    const double root = std::sqrt(15.0);
    double sum = 0.225 * f(mix(t, 1. / 3, 1. / 3, 1. / 3));
    for (const double sign : {-1.0, 1.0}) {
        const double w = (155 + sign * root) / 1200, b = (6 + sign * root) / 21, a = 1 - 2 * b;
        sum += w * (f(mix(t, a, b, b)) + f(mix(t, b, a, b)) + f(mix(t, b, b, a)));
    }
    return sum * area;
}

// A triangle, its area, and the rule's value on it.
struct Patch {
    Corners corners;
    double area, value;
};

constexpr int kDepth = 60;

inline double refine(const Patch& piece, const Integrand& f, double tolerance, int depth) {
    const Corners& t = piece.corners;
    const double edge[3] = {apart(t[0], t[1]), apart(t[1], t[2]), apart(t[2], t[0])};
    const int longest = static_cast<int>(std::max_element(edge, edge + 3) - edge);
    const Point &p = t[longest], &q = t[(longest + 1) % 3], &r = t[(longest + 2) % 3];
    const Point middle{(p.x + q.x) / 2, (p.y + q.y) / 2, (p.z + q.z) / 2};
    Patch left{{p, middle, r}, piece.area / 2, 0}, right{{middle, q, r}, piece.area / 2, 0};
    left.value = seven_points(left.corners, left.area, f);
    right.value = seven_points(right.corners, right.area, f);
    const double found = left.value + right.value;
    // Early agreement can be chance.
    const bool agreed = std::fabs(found - piece.value) < tolerance && depth < kDepth - 7;
    if (agreed || depth == 0) return found;
    return refine(left, f, tolerance / 1.4, depth - 1) + refine(right, f, tolerance / 1.4, depth - 1);
}

inline double integrate(const Corners& t, double tolerance, const Integrand& f) {
    const double area = area_of(t);
    return refine({t, area, seven_points(t, area, f)}, f, tolerance, kDepth);
}

inline double potential_by_bisection(const Corners& t, const Point& at, double relative) {
    const double scale = area_of(t) / apart(at, mix(t, 1. / 3, 1. / 3, 1. / 3));
    return integrate(t, relative * scale, [&](const Point& y) { return 1 / apart(at, y); });
}

// Integral of ds / (sqrt(w^2 + s^2) + h) from lm to lp, for w > 0. With s = w sinh(t) the integrand is smooth in t.
// Gauss's rule with five points integrates it on pieces of at most an eighth.
inline long double along_edge(long double w, long double h, long double lm, long double lp) {
    const long double root = std::sqrt(10.0L / 7);
    const long double node[3] = {0, std::sqrt(5 - 2 * root) / 3, std::sqrt(5 + 2 * root) / 3};
    const long double swing = 13 * std::sqrt(70.0L);
    const long double weight[3] = {128.0L / 225, (322 + swing) / 900, (322 - swing) / 900};
    const auto f = [&](long double u) { return std::cosh(u) / (std::cosh(u) + h / w); };
    const long double from = std::asinh(lm / w), to = std::asinh(lp / w);
    const int pieces = 1 + static_cast<int>((to - from) * 8);
    const long double half = (to - from) / pieces / 2;
    long double sum = 0;
    for (int i = 0; i < pieces; ++i) {
        const long double middle = from + (2 * i + 1) * half;
        sum += weight[0] * f(middle);
        for (int k = 1; k < 3; ++k) sum += weight[k] * (f(middle - half * node[k]) + f(middle + half * node[k]));
    }
    return sum * half;
}

using Exact = std::array<long double, 3>;
inline Exact minus(const Point& p, const Point& q) {
    return {static_cast<long double>(p.x) - q.x, static_cast<long double>(p.y) - q.y,
            static_cast<long double>(p.z) - q.z};
}
inline long double dot(const Exact& a, const Exact& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
inline Exact cross(const Exact& a, const Exact& b) {
    return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

inline double potential_along_edges(const Corners& t, const Point& at) {
    const Exact normal = cross(minus(t[1], t[0]), minus(t[2], t[0]));
    const long double size = std::sqrt(dot(normal, normal)), h = std::fabs(dot(minus(t[0], at), normal)) / size;
    long double sum = 0;
    for (int e = 0; e < 3; ++e) {
        const Exact edge = minus(t[(e + 1) % 3], t[e]), a = minus(t[e], at);
        const long double length = std::sqrt(dot(edge, edge)), lm = dot(a, edge) / length;
        const long double out = dot(a, cross(edge, normal)) / (length * size), w = std::sqrt(out * out + h * h);
        if (w > 0) sum += out * along_edge(w, h, lm, lm + length);
    }
    return static_cast<double>(sum);
}

}  // namespace penstock::hmatrix::test
