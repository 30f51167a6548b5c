// Surfaces made by rule: their counts, that they are closed with outward normals, and which requests they refuse.
#include "hmatrix/geometry/shapes.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numbers>

#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

// Volume of the enclosed body; positive if normals point outward.
double volume(const Mesh& mesh) {
    double sum = 0;
    for (const auto& [i, j, k] : mesh.triangles) {
        const Point &a = mesh.vertices[i], &b = mesh.vertices[j], &c = mesh.vertices[k];
        sum += a.x * (b.y * c.z - b.z * c.y) + a.y * (b.z * c.x - b.x * c.z) + a.z * (b.x * c.y - b.y * c.x);
    }
    return sum / 6;
}

double surface(const Mesh& mesh) {
    double sum = 0;
    for (const double one : areas(mesh)) sum += one;
    return sum;
}

// Expects that each edge appears once in each direction.
void expect_closed(const Mesh& mesh) {
    std::map<std::pair<int, int>, int> edges;
    for (const Triangle& t : mesh.triangles) {
        for (std::size_t e = 0; e < 3; ++e) ++edges[{t[e], t[(e + 1) % 3]}];
    }
    for (const auto& [edge, times] : edges) {
        ASSERT_EQ(times, 1);
        ASSERT_TRUE(edges.contains({edge.second, edge.first}));
    }
}

// The Euler characteristic V - E + F.
std::int64_t euler(const Mesh& mesh) {
    return static_cast<std::int64_t>(mesh.vertices.size()) - mesh.unknowns() * 3 / 2 + mesh.unknowns();
}

TEST(Shapes, spheres_have_the_fewest_triangles_that_suffice) {
    for (const auto& [asked, got] : {std::pair{1, 20}, {20, 20}, {21, 80}, {320, 320}, {1000, 1280}, {5120, 5120},
                                     {2000, 2000}, {1281, 1620}, {46'000, 46'080}}) {
        EXPECT_EQ(sphere(asked).unknowns(), got);
    }
}

TEST(Shapes, a_sphere_is_closed_round_and_turned_outward) {
    for (const int asked : {20, 180, 500, 720, 1280}) {
        const Mesh mesh = sphere(asked, 2.5);
        expect_closed(mesh);
        EXPECT_EQ(euler(mesh), 2);
        for (const Point& p : mesh.vertices) ASSERT_NEAR(std::hypot(p.x, p.y, p.z), 2.5, 1e-14 * 10);
    }
    EXPECT_NEAR(volume(sphere(5120, 2.5)) / (4 * std::numbers::pi / 3 * 2.5 * 2.5 * 2.5), 1, 3e-3);
}

TEST(Shapes, a_cube_is_closed_and_of_its_size) {
    for (const bool graded : {false, true}) {
        const Mesh mesh = cube(192, {.edge = 3, .graded = graded});
        EXPECT_EQ(mesh.unknowns(), 192);
        expect_closed(mesh);
        EXPECT_EQ(euler(mesh), 2);
        EXPECT_NEAR(surface(mesh), 54, 1e-12);
        EXPECT_NEAR(volume(mesh), 27, 1e-12);
    }
    EXPECT_EQ(cube(6912).unknowns(), 6912);
    EXPECT_EQ(cube(6913).unknowns(), 12 * 26 * 26) << "graded cubes have an even number of lines";
    EXPECT_EQ(cube(6913, {.graded = false}).unknowns(), 12 * 25 * 25);
}

TEST(Shapes, a_graded_cube_is_finer_at_its_edges_and_symmetric) {
    const Mesh mesh = cube(768);
    double least = 1, most = 0;
    for (const double one : areas(mesh)) {
        least = std::min(least, one);
        most = std::max(most, one);
    }
    EXPECT_NEAR(most / least, 49, 1e-9) << "lines at 0, 1/32, 4/32, 9/32, 16/32: 7 times as wide in the middle";
}

TEST(Shapes, a_torus_is_closed_with_a_hole) {
    for (const int asked : {1, 500, 4000}) {
        const Mesh mesh = torus(asked);
        EXPECT_GE(mesh.unknowns(), asked);
        EXPECT_LE(mesh.unknowns(), asked * 1.05 + 20);
        expect_closed(mesh);
        EXPECT_EQ(euler(mesh), 0);
    }
    const double pi = std::numbers::pi;
    EXPECT_NEAR(surface(torus(20'000)) / (4 * pi * pi * 0.4), 1, 2e-3);
    EXPECT_NEAR(volume(torus(20'000)) / (2 * pi * pi * 0.16), 1, 2e-3);
}

TEST(Shapes, a_bumpy_sphere_is_closed_and_stays_within_its_height) {
    const Mesh mesh = bumpy(5120, {.radius = 2, .height = 0.3});
    expect_closed(mesh);
    double low = 9, high = 0;
    for (const Point& p : mesh.vertices) {
        const double r = std::hypot(p.x, p.y, p.z);
        low = std::min(low, r);
        high = std::max(high, r);
    }
    EXPECT_GE(low, 2 * 0.7);
    EXPECT_LE(high, 2 * 1.3);
    EXPECT_GT(high - low, 0.5);
    EXPECT_GT(volume(mesh), 0);
}

TEST(Shapes, mirrored_spheres_are_mirror_images_with_opposite_potential) {
    const Mesh mesh = mirrored_spheres(600);
    expect_closed(mesh);
    EXPECT_EQ(euler(mesh), 4);
    EXPECT_NEAR(volume(mesh), 2 * volume(sphere(300, 0.25)), 1e-12);
    const std::vector<Point> middle = centroids(mesh);
    const std::size_t half = mesh.triangles.size() / 2;
    ASSERT_EQ(mesh.values.size(), 2 * half);
    for (std::size_t i = 0; i < half; ++i) {
        ASSERT_NEAR(middle[i].x, middle[half + i].x, 1e-15);
        ASSERT_NEAR(middle[i].y, middle[half + i].y, 1e-15);
        ASSERT_NEAR(middle[i].z, -middle[half + i].z, 1e-15);
        ASSERT_EQ(mesh.values[i], -1);
        ASSERT_EQ(mesh.values[half + i], 1);
    }
}

TEST(Shapes, come_by_name) {
    for (const std::string& name : shape_names()) EXPECT_GE(shape(name, 200).unknowns(), 200) << name;
    try {
        shape("teapot", 200);
        FAIL() << "accepted";
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("sphere, cube, torus, bumpy, mirrored-spheres"), std::string::npos);
    }
}

TEST(Shapes, numbers_that_make_no_surface_are_refused) {
    EXPECT_THROW(sphere(0), Error);
    EXPECT_THROW(sphere(kMostTriangles + 1), Error);
    EXPECT_THROW(sphere(20, -1), Error);
    EXPECT_THROW(cube(-5), Error);
    EXPECT_THROW(cube(12, {.edge = NAN}), Error);
    EXPECT_THROW(torus(100, {.ring = 1, .tube = 1}), Error);
    EXPECT_THROW(bumpy(100, {.height = 2}), Error);
    EXPECT_THROW(mirrored_spheres(100, {.radius = 0.5, .height = 0.5}), Error);
}

}  // namespace
}  // namespace penstock::hmatrix
