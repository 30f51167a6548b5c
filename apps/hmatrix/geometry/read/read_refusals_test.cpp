// Files that do not hold a sound mesh. The reader refuses each with its name, the place and the cause, and allocates
// little memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "hmatrix/geometry/read.hpp"
#include "hmatrix/geometry/read/test_mesh_bytes.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

std::string refusal(const std::string& bytes, const std::string& name) {
    try {
        parse_mesh(bytes, name);
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
        return error.what();
    }
    return "accepted";
}

void expect_refused(const std::string& bytes, const std::string& name, const std::string& words) {
    const std::string said = refusal(bytes, name);
    EXPECT_NE(said.find(words), std::string::npos) << said << "\n  where '" << words << "' was expected";
}

std::string with(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
}

TEST(ReadRefusals, nothing_and_garbage) {
    for (const char* name : {"a.ply", "a.obj", "a.stl", "a.off", "a.pbf", "a"}) {
        expect_refused("", name, "the file is empty");
    }
    const std::string garbage("\x93\x00\xff\x12garbage \x01\x02", 15);
    expect_refused(garbage, "a", "neither content nor name tells a format");
    expect_refused(garbage, "a.ply", "does not begin with the line 'ply'");
    expect_refused(garbage, "a.obj", "line 1: '??");
    expect_refused(garbage, "a.stl", "a head of 84 bytes");
    expect_refused(garbage, "a.off", "where OFF should stand");
    expect_refused(garbage, "a.pbf", "where a whole number for nodes should stand");
    expect_refused(std::string(1000, '\0'), "a.stl", "takes 84 bytes, and the file has 1000");
}

TEST(ReadRefusals, what_has_no_end_or_is_no_file) {
    for (const std::string path : {"/dev/zero", "/dev/null"}) {
        try {
            read_mesh(path);
            ADD_FAILURE() << path << " was accepted";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
            EXPECT_NE(std::string(error.what()).find(path + ": it is a device"), std::string::npos) << error.what();
        }
    }
}

TEST(ReadRefusals, every_file_that_is_cut_off_anywhere) {
    const std::vector<std::pair<std::string, std::string>> files = {
        {"a.ply", test::kPlyText}, {"b.ply", test::ply_binary()}, {"c.ply", test::ply_binary({.big = true})},
        {"a.stl", test::stl_binary()}, {"b.stl", test::stl_text()}, {"a.off", test::kOff}, {"a.pbf", test::kPbf}};
    for (const auto& [name, whole] : files) {
        EXPECT_EQ(refusal(whole, name), "accepted");
        // A file without its last digits, or without its last line, may still be sound.
        const std::size_t spared = name == "b.stl" ? 60 : whole.size() > 1 && whole.back() == '\n' ? 2 : 0;
        for (std::size_t size = 0; size + spared < whole.size(); ++size) {
            ASSERT_NE(refusal(whole.substr(0, size), name), "accepted") << name << " cut at " << size;
        }
    }
}

TEST(ReadRefusals, numbers_that_are_not_finite) {
    expect_refused(with(test::kPlyText, "1.5", "nan"), "a.ply", "line 12: 'nan' for y is not a finite number");
    expect_refused(with(test::kObj, "1.5", "inf"), "a.obj", "line 3: 'inf' for a coordinate is not a finite number");
    expect_refused(with(test::kOff, "1.5", "-inf"), "a.off", "line 5: '-inf' for y is not a finite number");
    expect_refused(with(test::kPbf, "1.5", "1e999"), "a.pbf", "line 4: '1e999' for y is outside the range");
    expect_refused(with(test::kPbf, "0.5 9", "nan 9"), "a.pbf", "line 20: 'nan' for a real parameter");
    expect_refused(with(test::stl_text(), "1.5", "1.5.2"), "a.stl", "where a number for a coordinate should stand");
    std::string stl = test::stl_binary();
    stl.replace(84 + 12, 4, "\xff\xff\xff\x7f");
    expect_refused(stl, "a.stl", "vertex 0 has a coordinate that is not a finite number");
    std::string ply = test::ply_binary();
    ply.replace(ply.find("end_header\n") + 11 + 12, 4, std::string("\x00\x00\x80\x7f", 4));
    expect_refused(ply, "a.ply", "vertex 1 has a coordinate that is not a finite number");
}

TEST(ReadRefusals, indices_out_of_range) {
    expect_refused(with(test::kPlyText, "3 1 2 3", "3 1 2 4"), "a.ply", "triangle 2 names vertex 4, and there are 4");
    expect_refused(with(test::kPlyText, "3 1 2 3", "3 1 -2 3"), "a.ply", "triangle 2 names vertex -2");
    expect_refused(with(test::kObj, "f 2 3 4", "f 2 3 5"), "a.obj", "line 7: a face names vertex 5, and 4 are");
    expect_refused(with(test::kObj, "f 2 3 4", "f 2 -5 4"), "a.obj", "line 7: a face names vertex -5");
    expect_refused(with(test::kObj, "f 2 3 4", "f 0 3 4"), "a.obj", "line 7: a face names vertex 0");
    expect_refused(with(test::kOff, "3 1 2 3", "3 1 2 9999999999"), "a.off", "triangle 2 names vertex 9999999999");
    expect_refused(with(test::kPbf, "1 2 3\n", "1 2 7\n"), "a.pbf", "triangle 2 names vertex 7");
}

TEST(ReadRefusals, counts_that_are_wrong) {
    for (const char* count : {"3", "5"}) {
        expect_refused(with(test::kPlyText, "vertex 4", std::string("vertex ") + count), "a.ply", "line ");
        expect_refused(with(test::kPlyText, "face 4", std::string("face ") + count), "a.ply", "");
        expect_refused(with(test::ply_binary(), "face 4", std::string("face ") + count), "a.ply", "count");
        expect_refused(with(test::kOff, "4 4 6", std::string("4 ") + count + " 6"), "a.off", "counts");
    }
    expect_refused(with(test::kPlyText, "face 4", "face 3"), "a.ply", "9 bytes follow the last element");
    expect_refused(with(test::kPbf, "4\n3\n1\n2", "3\n3\n1\n2"), "a.pbf", "a.pbf");
    expect_refused(with(test::kPbf, "4\n3\n1\n2", "4\n4\n1\n2"), "a.pbf", "faces of 4 nodes");
    std::string stl = test::stl_binary();
    stl[80] = 5;
    expect_refused(stl, "a.stl", "of 5 triangles takes 334 bytes, and the file has 284");
    expect_refused(with(test::kPlyText, "3 1 2 3", "2 1 2"), "a.ply", "2 corners");
    expect_refused(with(test::kObj, "f 2 3 4", "f 2 3"), "a.obj", "line 7: a face of 2 corners");
    expect_refused(with(test::kOff, "3 1 2 3", "4 1 2 3"), "a.off", "line 9: the line ends before all corners");
    expect_refused("OFF\n1 0 0\n0 0 0\n", "a.off", "holds no triangles");
}

TEST(ReadRefusals, counts_that_would_take_terabytes) {
    for (const char* count : {"1000000000000", "9223372036854775807", "-1", "2147483648"}) {
        expect_refused(with(test::kPlyText, "vertex 4", std::string("vertex ") + count), "a.ply", "line 9: ");
        expect_refused(with(test::ply_binary(), "face 4", std::string("face ") + count), "a.ply", "line 9: ");
        expect_refused(with(test::kOff, "4 4 6", std::string("4 ") + count + " 6"), "a.off", "line 2: ");
        expect_refused(with(test::kOff, "4 4 6", std::string(count) + " 4 6"), "a.off", "line 2: ");
        expect_refused(with(test::kPbf, "4\n0.0", std::string(count) + "\n0.0"), "a.pbf", "line 1: ");
        expect_refused(with(test::kPbf, "4\n3\n1\n2", std::string(count) + "\n3\n1\n2"), "a.pbf", "line 6: ");
        expect_refused(with(test::kOff, "3 1 2 3", std::string(count) + " 1 2 3"), "a.off", "line 9: ");
    }
    expect_refused(with(test::kPlyText, "vertex 4", "vertex 99999999999999999999"), "a.ply", "whole number");
    std::string list = test::ply_binary({.length = "uint"});
    list.replace(list.size() - 16, 4, "\xff\xff\xff\xff");
    expect_refused(list, "a.ply", "a list of 4294967295 vertex_indices cannot be in the 12 bytes");
}

TEST(ReadRefusals, bytes_in_the_wrong_order) {
    const std::string big = with(test::ply_binary({.big = true}), "binary_big", "binary_little");
    expect_refused(big, "a.ply", "its byte order is not what it says");
    const std::string lists = with(test::ply_binary({.length = "int"}), "binary_little", "binary_big");
    expect_refused(lists, "a.ply", "its byte order is not what it says");
    std::string stl = test::stl_binary();
    std::reverse(stl.begin() + 80, stl.begin() + 84);
    expect_refused(stl, "a.stl", "STL is little-endian");
}

TEST(ReadRefusals, headers_of_ply_that_say_nothing_sound) {
    expect_refused(with(test::kPlyText, "ascii", "ebcdic"), "a.ply", "line 2: 'ebcdic' is not a PLY format");
    expect_refused(with(test::kPlyText, "ascii 1.0", "ascii 2.0"), "a.ply", "line 2: PLY version '2.0'");
    expect_refused(with(test::kPlyText, "format ascii 1.0\n", ""), "a.ply", "names no format");
    expect_refused(with(test::kPlyText, "float y", "quad y"), "a.ply", "line 5: 'quad' is not a PLY type");
    expect_refused(with(test::kPlyText, "float y", "float q"), "a.ply", "vertices have no y");
    expect_refused(with(test::kPlyText, "int vertex_indices", "float vertex_indices"), "a.ply", "not whole");
    expect_refused(with(test::kPlyText, "list uchar", "list float"), "a.ply", "line 8: the length of a list");
    expect_refused(with(test::kPlyText, "vertex_indices", "corners"), "a.ply", "no list named vertex_indices");
    expect_refused(with(test::kPlyText, "element face", "element facet"), "a.ply", "no element 'face'");
    expect_refused(with(test::kPlyText, "element face", "element vertex"), "a.ply", "two elements are named 'vertex'");
    expect_refused(with(test::kPlyText, "end_header", "end"), "a.ply", "'end' is not a keyword of a PLY header");
    expect_refused("ply\nformat ascii 1.0\n", "a.ply", "the header has no end");
}

TEST(ReadRefusals, kinds_that_are_known_and_not_read) {
    expect_refused("OFF BINARY\n...", "a.off", "Penstock does not read binary OFF");
    expect_refused("4OFF\n", "a.off", "do not have three coordinates");
    expect_refused(with(test::kObj, "f 1 4 3", "curv 0 1 2"), "a.obj", "line 8: 'curv' is not an OBJ statement");
}

TEST(ReadRefusals, places_so_far_away_that_areas_overflow) {
    expect_refused(with(test::kObj, "1.5", "1e300"), "a.obj", "has a coordinate beyond 1e60 m");
    EXPECT_THROW(parse_mesh(with(test::kObj, "1.5", "1e55"), "a.obj", {.unit_metres = 1e10}), Error);
    EXPECT_NO_THROW(parse_mesh(with(test::kObj, "1.5", "1e55"), "a.obj", {.unit_metres = 1e4}));
}

}  // namespace
}  // namespace penstock::hmatrix
