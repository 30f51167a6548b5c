// Compares the exact potential of a triangle with adaptive quadrature, for observers at all kinds of places.
#include "hmatrix/kernel/laplace.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "hmatrix/kernel/test_quadrature.hpp"

namespace penstock::hmatrix {
namespace {

using test::Corners;
using test::mix;

const Corners kPlain{{{0.1, 0.2, 0.3}, {1.2, 0.1, 0.5}, {0.4, 0.9, 0.1}}};
// Aspect ratio 1e4 : 1, with the apex above the middle.
const Corners kNeedle{{{0, 0, 0}, {1, 0.3, -0.2}, {0.5, 0.15 + 1e-4, -0.1}}};
// Aspect ratio 1e4 : 1, with one short edge.
const Corners kSplinter{{{0, 0, 0}, {1e-4, 0.5e-4, 0}, {0.3e-4, 0.8, 0.6}}};

Panel panel_of(const Corners& t) {
    Mesh mesh;
    mesh.vertices.assign(t.begin(), t.end());
    mesh.triangles = {{0, 1, 2}};
    return panels(mesh)[0];
}

double exact(const Corners& t, const Point& at) {
    const double x[3] = {at.x, at.y, at.z};
    return potential(panel_of(t), x);
}

// The point with barycentric coordinates (a, b, 1 - a - b), raised above the triangle by `height` longest edges.
Point place(const Corners& t, double a, double b, double height) {
    const Panel p = panel_of(t);
    Point at = mix(t, a, b, 1 - a - b);
    const double up = height * p.base;
    return {at.x + up * p.axis[2][0], at.y + up * p.axis[2][1], at.z + up * p.axis[2][2]};
}

void expect_right(const Corners& t, const Point& at, double relative) {
    const double wanted = test::potential_along_edges(t, at);
    EXPECT_NEAR(exact(t, at) / wanted, 1, relative) << at.x << ' ' << at.y << ' ' << at.z;
}

TEST(Laplace, equals_bisection_where_no_point_is_close) {
    for (const double height : {-2.0, 0.3, 1.0}) {
        for (const double a : {-1.5, 0.2, 1.1}) {
            const Point at = place(kPlain, a, 0.3, height);
            EXPECT_NEAR(exact(kPlain, at) / test::potential_by_bisection(kPlain, at, 1e-11), 1, 1e-10);
        }
    }
    const Point beside = place(kNeedle, 0.2, 0.3, 0.02);
    EXPECT_NEAR(exact(kNeedle, beside) / test::potential_by_bisection(kNeedle, beside, 1e-11), 1, 1e-10);
}

TEST(Laplace, equals_quadrature_above_and_below_a_triangle) {
    for (const double height : {-3.0, -0.5, -0.02, 1e-3, 0.1, 0.9, 4.0, 20.0}) {
        for (const double a : {-0.8, 0.0, 0.25, 0.5, 1.0, 1.6}) {
            expect_right(kPlain, place(kPlain, a, 0.3, height), 3e-12);
        }
    }
}

TEST(Laplace, equals_quadrature_in_the_plane_of_the_triangle) {
    for (const double a : {-2.0, -0.4, -1e-3, 1.3, 5.0}) {
        for (const double b : {-1.0, 0.2, 0.7}) expect_right(kPlain, place(kPlain, a, b, 0), 3e-12);
    }
}

TEST(Laplace, equals_quadrature_on_the_centroid_the_edges_and_the_corners) {
    for (const Corners& t : {kPlain, kNeedle, kSplinter}) {
        for (const double a : {1. / 3, 0.5, 0.9}) expect_right(t, place(t, a, 1. / 3 * (1 - a), 0), 1e-9);
        for (const double a : {0.5, 0.25, 1e-3}) expect_right(t, place(t, a, 0, 0), 1e-9);
        for (const Point& corner : t) expect_right(t, corner, 1e-9);
    }
}

TEST(Laplace, equals_quadrature_on_the_line_of_an_edge_outside_it) {
    expect_right(kPlain, place(kPlain, 2, -1, 0), 1e-9);
    expect_right(kPlain, place(kPlain, -1, 2, 0), 1e-9);
    expect_right(kPlain, place(kPlain, 0, 3, 0), 1e-9);
    expect_right(kPlain, place(kPlain, 2, -1, 1e-9), 1e-9);
}

TEST(Laplace, equals_quadrature_at_long_thin_triangles) {
    for (const Corners& t : {kNeedle, kSplinter}) {
        for (const double height : {0.0, 1e-5, 1e-3, 0.3, 5.0}) {
            for (const double a : {-0.7, 0.1, 1. / 3, 1.5}) expect_right(t, place(t, a, 0.35, height), 2e-8);
        }
    }
}

TEST(Laplace, is_continuous_where_the_far_rule_begins) {
    for (const Corners& t : {kPlain, kNeedle}) {
        const Panel p = panel_of(t);
        const double reach = std::sqrt(p.reach2) / p.base;
        for (const double angle : {0.1, 0.9, 1.6, 2.8}) {
            const auto at = [&](double edges) {
                const double r = edges * p.base, c = r * std::cos(angle), s = r * std::sin(angle);
                const Point middle = mix(t, 1. / 3, 1. / 3, 1. / 3);
                return Point{middle.x + c * p.axis[0][0] + s * p.axis[2][0],
                             middle.y + c * p.axis[0][1] + s * p.axis[2][1],
                             middle.z + c * p.axis[0][2] + s * p.axis[2][2]};
            };
            const double near = exact(t, at(reach * (1 - 1e-12))), far = exact(t, at(reach * (1 + 1e-12)));
            EXPECT_NEAR(near / far, 1, &t == &kPlain ? 3e-12 : 2e-8);
        }
    }
}

TEST(Laplace, far_away_is_a_point_charge) {
    const Point middle = mix(kPlain, 1. / 3, 1. / 3, 1. / 3);
    for (const double distance : {1e4, 1e8, 1e12}) {
        const Point at{middle.x, middle.y - distance, middle.z};
        EXPECT_NEAR(exact(kPlain, at) * distance / test::area_of(kPlain), 1, 1e-8);
    }
}

TEST(Laplace, does_not_depend_on_the_order_of_corners_or_the_side) {
    const Corners turned{kPlain[1], kPlain[2], kPlain[0]}, flipped{kPlain[2], kPlain[1], kPlain[0]};
    for (const double height : {0.0, 1e-9, 0.2, 3.0}) {
        const Point above = place(kPlain, 0.2, 0.6, height), below = place(kPlain, 0.2, 0.6, -height);
        const double wanted = exact(kPlain, above);
        EXPECT_NEAR(exact(turned, above) / wanted, 1, 1e-13);
        EXPECT_NEAR(exact(flipped, above) / wanted, 1, 1e-13);
        EXPECT_NEAR(exact(kPlain, below) / wanted, 1, 1e-13);
    }
}

TEST(Laplace, scales_with_length_down_to_a_nanometre_and_up) {
    for (const double unit : {1e-9, 1e-3, 1e6}) {
        Corners scaled = kPlain;
        for (Point& p : scaled) p = {p.x * unit, p.y * unit, p.z * unit};
        const Point at{0.7 * unit, 0.6 * unit, 0.8 * unit};
        EXPECT_NEAR(exact(scaled, at) / (unit * exact(kPlain, {0.7, 0.6, 0.8})), 1, 1e-12);
    }
}

TEST(Laplace, stays_finite_and_smooth_within_rounding_of_edges_and_corners) {
    for (const Corners& t : {kPlain, kNeedle, kSplinter}) {
        for (const Point& base : {t[0], t[1], t[2], mix(t, 0.5, 0.5, 0), mix(t, 0, 0.3, 0.7), mix(t, 2, -1, 0)}) {
            const double on = exact(t, base);
            for (const double step : {1e-16, 1e-13, 1e-10}) {
                const Point beside{base.x + step, base.y - step, base.z + step};
                EXPECT_NEAR(exact(t, beside) / on, 1, 1e-4 * std::sqrt(step / 1e-16) * 1e-1 + 1e-7);
            }
        }
    }
}

}  // namespace
}  // namespace penstock::hmatrix
