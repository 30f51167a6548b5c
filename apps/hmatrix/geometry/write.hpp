// Writes surfaces with numbers on their triangles, for ParaView and other viewers.
//
// A file appears under its name complete or not at all. The writer fills a temporary file beside it, makes it durable,
// and renames it. If that fails (full disk, no permission), the writer removes the temporary file, leaves an older file
// unchanged, and throws an Error with the file and the cause.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hmatrix/geometry/mesh.hpp"

namespace penstock::hmatrix {

struct FaceNumbers {
    std::string name;                // letters, digits and _ only, e.g. "surface_charge"
    std::span<const double> values;  // one value a triangle
};

// Legacy VTK, binary: polygons, with one scalar array in double precision for each set of numbers.
void write_vtk(const std::string& path, const Mesh& mesh, const std::vector<FaceNumbers>& numbers);

// PLY, binary little-endian: faces, with one property in double precision for each set of numbers.
void write_ply(const std::string& path, const Mesh& mesh, const std::vector<FaceNumbers>& numbers);

// Chooses the format by the ending, .vtk or .ply. Throws Error{invalid_argument} for another ending.
void write_surface(const std::string& path, const Mesh& mesh, const std::vector<FaceNumbers>& numbers);

}  // namespace penstock::hmatrix
