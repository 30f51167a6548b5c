// Reads meshes from files: PLY, OBJ, STL, OFF and HACApK's .pbf, each in its variants.
//
// The reader recognises the format by the content first, and by the ending of the name second. It refuses a file that
// is incomplete or faulty, with its name, the line (text) or byte offset (binary), and the cause. It guesses nothing,
// and believes a count in a file only if the file is long enough for it. A face of n > 3 corners becomes a fan of n - 2
// triangles about its first corner, which is right for convex faces. Triangles are numbered in this order.
//   PLY  ascii, binary of either byte order; any elements, properties and types; faces by vertex_indices (vertex_index)
//   OBJ  v, f (v, v/vt, v//vn, v/vt/vn, negative numbers); ignores texture, groups and materials
//   STL  ascii and binary; corners that are equal to the last bit become one vertex
//   OFF  with comments and any of the prefixes ST, C, N; ignores colours and normals; not OFF BINARY
//   pbf  text; the first number of each face becomes Mesh::values (a potential in volts)
#pragma once

#include <string>
#include <string_view>

#include "hmatrix/geometry/mesh.hpp"

namespace penstock::hmatrix {

struct ReadOptions {
    double unit_metres = 1;  // length of the file's unit in metres, e.g. 1e-3 for millimetres; above 0
};

// Throws Error{not_found} and others if the file cannot be opened, Error{invalid_argument} if it does not hold a sound
// mesh, and Error{unsupported} for a format that this reader does not read.
Mesh read_mesh(const std::string& path, const ReadOptions& options = {});

// Reads a mesh from the bytes of a file. `name` appears in messages, and its ending helps to recognise the format.
Mesh parse_mesh(std::string_view bytes, const std::string& name, const ReadOptions& options = {});

}  // namespace penstock::hmatrix
