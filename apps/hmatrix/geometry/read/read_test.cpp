// Meshes from the bytes of every format and variant, with units and polygons.
#include "hmatrix/geometry/read.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "hmatrix/geometry/read/test_mesh_bytes.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

using test::Bytes;

void expect_tetrahedron(const Mesh& mesh) {
    ASSERT_EQ(mesh.vertices.size(), 4u);
    ASSERT_EQ(mesh.triangles.size(), 4u);
    EXPECT_EQ(mesh.vertices[1].x, 1);
    EXPECT_EQ(mesh.vertices[2].y, 1.5);
    EXPECT_EQ(mesh.vertices[3].z, -2.25);
    EXPECT_EQ(mesh.triangles[1], (Triangle{0, 1, 3}));
    EXPECT_EQ(mesh.triangles[3], (Triangle{0, 3, 2}));
}

Mesh parse(const std::string& bytes, const std::string& name = "mesh") { return parse_mesh(bytes, name); }

TEST(ReadPly, text) {
    expect_tetrahedron(parse(test::kPlyText));
    std::string windows;
    for (const char c : std::string(test::kPlyText)) windows += c == '\n' ? "\r\n" : std::string(1, c);
    expect_tetrahedron(parse(windows));
}

TEST(ReadPly, binary_of_either_byte_order_and_any_types) {
    for (const bool big : {false, true}) {
        for (const char* real : {"float", "double", "float32"}) {
            for (const char* length : {"uchar", "ushort", "int", "uint8"}) {
                for (const char* index : {"int", "uint", "short", "uchar"}) {
                    expect_tetrahedron(parse(test::ply_binary({big, real, length, index})));
                }
            }
        }
    }
}

TEST(ReadPly, elements_and_properties_that_are_not_asked_for_are_stepped_over) {
    for (const bool big : {false, true}) {
        Bytes bytes(big);
        bytes.text("ply\nformat binary_" + std::string(big ? "big" : "little") +
                   "_endian 1.0\ncomment made by a test\nobj_info a b c\nelement camera 2\nproperty list ushort float "
                   "shape\nproperty char kind\nelement face 1\nproperty uchar flags\nproperty list uchar ushort "
                   "vertex_index\nproperty list int double weights\nelement vertex 3\nproperty double y\nproperty "
                   "uchar red\nproperty float x\nproperty list uchar uchar tags\nproperty int z\nelement edge 0\n"
                   "property int a\nend_header\n");
        bytes.put<std::uint16_t>(2).put(1.f).put(2.f).put<char>(7).put<std::uint16_t>(0).put<char>(8);
        bytes.put<std::uint8_t>(9).put<std::uint8_t>(3).put<std::uint16_t>(2).put<std::uint16_t>(1);
        bytes.put<std::uint16_t>(0).put(1).put(0.5);
        for (int i = 0; i < 3; ++i) {
            bytes.put(10.0 + i).put<std::uint8_t>(255).put(static_cast<float>(i)).put<std::uint8_t>(1);
            bytes.put<std::uint8_t>(1).put(-i);
        }
        const Mesh mesh = parse(bytes.all());
        ASSERT_EQ(mesh.vertices.size(), 3u);
        EXPECT_EQ(mesh.vertices[2].x, 2);
        EXPECT_EQ(mesh.vertices[2].y, 12);
        EXPECT_EQ(mesh.vertices[2].z, -2);
        EXPECT_EQ(mesh.triangles, (std::vector<Triangle>{{2, 1, 0}}));
    }
}

TEST(ReadObj, corners_with_texture_and_normals_and_numbers_from_behind) {
    expect_tetrahedron(parse(test::kObj));
    expect_tetrahedron(parse("# comment first\nmtllib a.mtl\nv 0 0 0 1.0\nv 1 0 0\nv 0 1.5 0 0.5 0.5 0.5\n"
                             "v +0 0 -2.25\nvt 0 0\nvn 0 0 1\ng all\nusemtl m\ns off\n"
                             "f 1/1/1 3/1/1 2/1/1\nf -4//1 -3//1 -1//1\n"
                             "f 2/1 3/1 \\\n 4/1\nf 1 4 3 # comment\n"));
}

TEST(ReadObj, a_polygon_becomes_a_fan) {
    const Mesh mesh = parse("v 0 0 0\nv 1 0 0\nv 2 1 0\nv 1 2 0\nv 0 1 0\nf 1 2 3 4 5\nf 1 2 3\n");
    EXPECT_EQ(mesh.triangles, (std::vector<Triangle>{{0, 1, 2}, {0, 2, 3}, {0, 3, 4}, {0, 1, 2}}));
}

TEST(ReadStl, text_and_binary_merge_equal_corners) {
    for (const std::string& bytes : {test::stl_text(), test::stl_binary()}) {
        const Mesh mesh = parse(bytes);
        EXPECT_EQ(mesh.vertices.size(), 4u);
        EXPECT_EQ(mesh.triangles.size(), 4u);
    }
    const std::string twice = test::stl_text() + test::stl_text();
    EXPECT_EQ(parse(twice).vertices.size(), 4u) << "of several solids, too";
}

TEST(ReadStl, a_binary_file_may_begin_with_the_word_solid_and_holds_minus_zero) {
    std::string bytes = test::stl_binary();
    bytes.replace(0, 6, "solid ");
    bytes[84 + 12 + 3] = static_cast<char>(0x80);  // the first coordinate becomes -0
    EXPECT_EQ(parse(bytes).vertices.size(), 4u);
}

TEST(ReadOff, with_comments_and_colours) {
    expect_tetrahedron(parse(test::kOff));
    expect_tetrahedron(parse("# first\nCOFF # kind\n\n4 4 # no edges\n0 0 0 1 0 0 1\n1 0 0 0 1 0 1\n#\n"
                             "0 1.5 0 0 0 1 1\n0 0 -2.25 1 1 1 1\n3 0 2 1 255 0 0\n3 0 1 3\n"
                             "3  1 2 3 0.5 0.5 0.5\n3 0 3 2 # end\n"));
    expect_tetrahedron(parse("OFF 4 4 6\n0 0 0\n1 0 0\n0 1.5 0\n0 0 -2.25\n3 0 2 1\n3 0 1 3\n3 1 2 3\n3 0 3 2"));
    expect_tetrahedron(parse("STCNOFF\n4 4 6\n0 0 0 9 9\n1 0 0 9 9\n0 1.5 0 9 9\n0 0 -2.25 9 9\n3 0 2 1\n3 0 1 3\n"
                             "3 1 2 3\n3 0 3 2\n"));
}

TEST(ReadPbf, with_potentials) {
    const Mesh mesh = parse(test::kPbf, "mesh.pbf");
    expect_tetrahedron(mesh);
    EXPECT_EQ(mesh.values, (std::vector<double>{1, -1, 0.5, 1000}));
    std::string none = test::kPbf;
    none = none.substr(0, none.find("\n1\n2\n") + 1) + "0\n0\n0 2 1 0 1 3 1 2 3 0 3 2\n";
    EXPECT_TRUE(parse(none, "mesh.pbf").values.empty());
}

TEST(ReadMesh, content_tells_the_format_before_the_name_does) {
    expect_tetrahedron(parse(test::kPlyText, "wrong.stl"));
    expect_tetrahedron(parse(test::kOff, "wrong.ply"));
    expect_tetrahedron(parse(test::kObj, "wrong.pbf"));
    EXPECT_EQ(parse(test::stl_binary(), "wrong.obj").triangles.size(), 4u);
}

TEST(ReadMesh, the_mark_that_some_editors_put_before_text_is_passed_over) {
    const std::string mark = "\xef\xbb\xbf";
    expect_tetrahedron(parse(mark + test::kPlyText));
    const Mesh mesh = parse(mark + "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n");
    EXPECT_EQ(mesh.vertices.size(), 3u);
    EXPECT_THROW(parse(mark), Error);
    EXPECT_THROW(parse(mark.substr(1) + "v 0 0 0\n"), Error);
}

TEST(ReadMesh, units_scale_vertices_and_nothing_else) {
    const Mesh mesh = parse_mesh(test::kPbf, "mesh.pbf", {.unit_metres = 1e-3});
    EXPECT_DOUBLE_EQ(mesh.vertices[3].z, -2.25e-3);
    EXPECT_EQ(mesh.values[3], 1000);
    for (const double unit : {0.0, -1.0, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
        EXPECT_THROW(parse_mesh(test::kPbf, "mesh.pbf", {.unit_metres = unit}), Error);
    }
}

TEST(ReadMesh, from_a_file_and_not_from_what_is_none) {
    const std::string path = ::testing::TempDir() + "penstock-read-" + std::to_string(::getpid()) + ".PLY";
    std::ofstream(path) << test::kPlyText;
    expect_tetrahedron(read_mesh(path));
    std::filesystem::remove(path);
    try {
        read_mesh(path);
        FAIL() << "read";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::not_found);
        EXPECT_NE(std::string(error.what()).find(path), std::string::npos);
    }
    EXPECT_THROW(read_mesh(::testing::TempDir()), Error) << "a folder";
}

}  // namespace
}  // namespace penstock::hmatrix
