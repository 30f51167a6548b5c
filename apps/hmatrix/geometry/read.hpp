// Meshes from files: PLY, OBJ, STL, OFF and HACApK's .pbf, each in its variants.
//
// The format is told by content first and by the name's ending second. A file that is not whole and sound is refused
// with its name, the line (text) or byte offset (binary) and the cause; nothing is guessed, and no count in a file is
// believed before the file is long enough for it. A face of n > 3 corners becomes a fan of n - 2 triangles about its
// first corner, which is right for convex faces; triangles are numbered as they come out.
//   PLY  ascii, binary of either byte order; any elements, properties and types; faces by vertex_indices (vertex_index)
//   OBJ  v, f (v, v/vt, v//vn, v/vt/vn, negative numbers); texture, groups and materials are passed over
//   STL  ascii and binary; corners that are equal to the last bit become one vertex
//   OFF  with comments and any of the prefixes ST, C, N; colours and normals are passed over; not OFF BINARY
//   pbf  text; the first number of each face becomes Mesh::values (a potential in volts)
#pragma once

#include <string>
#include <string_view>

#include "hmatrix/geometry/mesh.hpp"

namespace penstock::hmatrix {

struct ReadOptions {
    double unit_metres = 1;  // length of the file's unit, e.g. 1e-3 for millimetres; above 0
};

// Throws Error: not_found and the like when the file cannot be opened, invalid_argument when it is no sound mesh,
// unsupported for a kind of file that is known and not read.
Mesh read_mesh(const std::string& path, const ReadOptions& options = {});

// The same of a file's bytes. `name` is for messages and for its ending.
Mesh parse_mesh(std::string_view bytes, const std::string& name, const ReadOptions& options = {});

}  // namespace penstock::hmatrix
