// Reports of meshes with one fault each, and the results of cleaning them.
#include "hmatrix/geometry/clean.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "hmatrix/geometry/shapes.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

Mesh cleaned(const Mesh& mesh, const CleanOptions& options = {}) {
    MeshReport report;
    return clean(mesh, options, report);
}

std::string refusal(const Mesh& mesh, const CleanOptions& options = {}) {
    try {
        cleaned(mesh, options);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
        return error.what();
    }
    return "accepted";
}

bool says(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

TEST(Inspect, sound_meshes_have_nothing_to_report) {
    for (const std::string& name : shape_names()) {
        const Mesh mesh = shape(name, 300);
        const MeshReport report = inspect(mesh);
        EXPECT_TRUE(report.sound()) << name << '\n' << describe(report);
        EXPECT_TRUE(report.closed) << name;
        EXPECT_EQ(report.components, name == "mirrored-spheres" ? 2 : 1);
        EXPECT_EQ(report.non_manifold_edges + report.unused_vertices + report.coincident_vertices, 0);
        EXPECT_EQ(cleaned(mesh).triangles, mesh.triangles);
        EXPECT_EQ(cleaned(mesh, {true, true, true}).values, mesh.values);
    }
}

TEST(Inspect, measures_the_bounding_box_of_what_is_used) {
    Mesh mesh = cube(48, {.edge = 2});
    mesh.vertices.push_back({100, 100, 100});
    const MeshReport report = inspect(mesh);
    EXPECT_EQ(report.low.x, 0);
    EXPECT_EQ(report.high.z, 2);
    EXPECT_EQ(report.unused_vertices, 1);
    EXPECT_EQ(cleaned(mesh).vertices.size(), mesh.vertices.size() - 1);
}

TEST(Inspect, an_open_mesh_is_stated_and_refused_when_told_to) {
    Mesh mesh = sphere(80);
    mesh.triangles.pop_back();
    const MeshReport report = inspect(mesh);
    EXPECT_FALSE(report.closed);
    EXPECT_EQ(report.boundary_edges, 3);
    EXPECT_TRUE(report.sound());
    EXPECT_TRUE(says(describe(report), "open: 3 boundary edges"));
    EXPECT_EQ(cleaned(mesh).triangles.size(), 79u);
    EXPECT_TRUE(says(refusal(mesh, {.refuse_open = true}), "the mesh is open: 3 edges"));
}

TEST(Inspect, an_edge_of_three_triangles_is_stated_and_refused_when_told_to) {
    Mesh mesh = sphere(20);
    mesh.vertices.push_back({0, 0, 3});
    mesh.triangles.push_back({mesh.triangles[0][0], mesh.triangles[0][1], 12});
    const MeshReport report = inspect(mesh);
    EXPECT_EQ(report.non_manifold_edges, 1);
    EXPECT_EQ(report.boundary_edges, 2);
    EXPECT_EQ(cleaned(mesh).triangles.size(), 21u);
    EXPECT_TRUE(says(refusal(mesh, {.refuse_non_manifold = true}), "1 edges belong to three or more"));
}

TEST(Clean, removes_duplicates_in_any_order_of_their_corners) {
    Mesh mesh = sphere(80);
    const auto whole = mesh.triangles;
    const auto [a, b, c] = whole[7];
    for (const Triangle& again : {Triangle{a, b, c}, {b, c, a}, {c, a, b}, {b, a, c}, {a, c, b}, {c, b, a}}) {
        mesh.triangles.push_back(again);
    }
    MeshReport report;
    const Mesh made = clean(mesh, {}, report);
    EXPECT_EQ(made.triangles, whole);
    EXPECT_EQ(report.duplicate_triangles, 6);
    EXPECT_EQ(report.first_duplicates, (std::vector<std::int64_t>{80, 81, 82, 83, 84}));
    EXPECT_TRUE(report.closed) << "duplicates are counted once";
    EXPECT_TRUE(says(describe(report), "6 duplicate triangles (80, 81, 82, 83, 84, ...)"));
    EXPECT_TRUE(says(refusal(mesh, {.refuse_duplicates = true}), "6 triangles that repeat others: 80, 81"));
    EXPECT_TRUE(inspect(made).sound());
}

TEST(Clean, vertices_of_the_same_place_are_one) {
    Mesh soup;
    const Mesh mesh = sphere(320);
    for (const Triangle& t : mesh.triangles) {
        const auto first = static_cast<std::int32_t>(soup.vertices.size());
        for (const std::int32_t corner : t) soup.vertices.push_back(mesh.vertices[corner]);
        soup.triangles.push_back({first, first + 1, first + 2});
    }
    soup.triangles.push_back({0, 2, 1});
    MeshReport report;
    const Mesh made = clean(soup, {}, report);
    EXPECT_EQ(report.coincident_vertices, 960 - 162);
    EXPECT_TRUE(report.closed);
    EXPECT_EQ(report.components, 1);
    EXPECT_EQ(made.vertices.size(), 162u);
    EXPECT_EQ(made.triangles.size(), 320u);
}

TEST(Clean, zero_and_minus_zero_are_the_same_place) {
    const Mesh mesh{{{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {-0.0, 0, 0}}, {{0, 1, 2}, {3, 2, 1}}, {}};
    MeshReport report;
    EXPECT_EQ(clean(mesh, {}, report).triangles.size(), 1u);
    EXPECT_EQ(report.duplicate_triangles, 1);
}

TEST(Clean, duplicates_of_different_value_are_refused) {
    Mesh mesh = sphere(20);
    mesh.triangles.push_back(mesh.triangles[3]);
    mesh.values.assign(21, 1.0);
    EXPECT_EQ(cleaned(mesh).values.size(), 20u);
    mesh.values[20] = 2;
    EXPECT_TRUE(says(refusal(mesh), "triangles 3 and 20 lie in the same place with different values"));
    mesh.values[20] = NAN;
    EXPECT_TRUE(says(refusal(mesh), "triangle 20 has a value"));
    mesh.values.pop_back();
    EXPECT_TRUE(says(refusal(mesh), "20 values for 21 triangles"));
}

TEST(Clean, what_cannot_be_mended_is_refused_by_number) {
    Mesh mesh = sphere(80);
    const Mesh good = mesh;
    mesh.triangles[11] = {1, 1, 2};
    EXPECT_TRUE(says(refusal(mesh), "1 triangle of no area: 11"));
    mesh = good;
    mesh.vertices.push_back({2, 0, 0});
    mesh.vertices.push_back({3, 0, 0});
    mesh.vertices.push_back({5, 1e-17, 0});
    mesh.triangles.push_back({42, 43, 44});
    EXPECT_TRUE(says(refusal(mesh), "1 triangle of no area: 80"));
    mesh = good;
    mesh.vertices[0].y = NAN;
    EXPECT_TRUE(says(refusal(mesh), "5 triangles with a corner that is not a finite number, or beyond 1e60 m: "));
    mesh.vertices[0].y = 1e300;
    EXPECT_TRUE(says(refusal(mesh), "5 triangles with a corner that is not a finite number, or beyond 1e60 m: "));
    mesh = good;
    mesh.triangles[2][1] = 42;
    mesh.triangles[9][0] = -1;
    EXPECT_TRUE(says(refusal(mesh), "2 triangles with a vertex that is not there: 2, 9"));
    EXPECT_TRUE(says(refusal({}), "no triangles"));
}

TEST(Clean, triangles_that_share_a_centroid_only_are_refused) {
    const Mesh star{{{1, 0, 0}, {-1, 1, 0}, {0, -1, 0}, {-1, 0, 0}, {1, -1, 0}, {0, 1, 0}},
                    {{0, 1, 2}, {3, 4, 5}}, {}};
    const MeshReport report = inspect(star);
    EXPECT_EQ(report.duplicate_triangles, 0);
    EXPECT_EQ(report.coincident_centroids, 1);
    EXPECT_FALSE(report.sound());
    EXPECT_TRUE(says(refusal(star), "1 triangle with the centroid of another: 1"));
}

TEST(Clean, counts_are_written_with_separators) {
    Mesh mesh = sphere(2000);
    const std::vector<Triangle> again = mesh.triangles;
    mesh.triangles.insert(mesh.triangles.end(), again.begin(), again.end());
    EXPECT_TRUE(says(describe(inspect(mesh)), "2,000 duplicate triangles (2000, 2001, 2002, 2003, 2004, ...)"));
}

}  // namespace
}  // namespace penstock::hmatrix
