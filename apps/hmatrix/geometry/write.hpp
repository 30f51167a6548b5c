// Surfaces with numbers on their triangles, for ParaView and other viewers.
//
// A file appears under its name whole or not at all: it is written beside it under a temporary name, made durable and
// renamed. When that fails (a full disk, no permission) the temporary file is removed, what was there before stays, and
// an Error tells the file and the cause.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hmatrix/geometry/mesh.hpp"

namespace penstock::hmatrix {

struct FaceNumbers {
    std::string name;  // of letters, digits and _, e.g. "surface_charge"
    std::span<const double> values;  // one a triangle
};

// Legacy VTK, binary: polygons with one scalar array a set of numbers, in double precision.
void write_vtk(const std::string& path, const Mesh& mesh, const std::vector<FaceNumbers>& numbers);

// PLY, binary little-endian: faces with a property of that name a set of numbers, in double precision.
void write_ply(const std::string& path, const Mesh& mesh, const std::vector<FaceNumbers>& numbers);

// By the ending of the name: .vtk or .ply. Throws Error{invalid_argument} for another.
void write_surface(const std::string& path, const Mesh& mesh, const std::vector<FaceNumbers>& numbers);

}  // namespace penstock::hmatrix
