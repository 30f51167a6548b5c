// What a mesh is made of, and the mesh a solver can be given.
//
// Everything here is judged by where vertices lie, not by their numbers: vertices of equal coordinates are one point.
// Triangles of the same three points, in any order, are duplicates: they make equal rows, and a singular matrix.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hmatrix/geometry/mesh.hpp"

namespace penstock::hmatrix {

struct MeshReport {
    std::int64_t vertices = 0, triangles = 0;  // as the mesh holds them
    std::int64_t coincident_vertices = 0;      // at the place of an earlier one
    std::int64_t unused_vertices = 0;          // no triangle names them
    std::int64_t duplicate_triangles = 0;      // beyond the first of each
    std::int64_t bad_indices = 0;              // triangles that name no vertex
    std::int64_t not_finite = 0;               // triangles with a corner that is not finite
    std::int64_t without_area = 0;             // finite triangles whose corners lie on a line, or that are tiny slivers
    std::int64_t coincident_centroids = 0;     // triangles, no duplicates, whose centroid an earlier one has
    // Of the sound triangles, each counted once:
    std::int64_t boundary_edges = 0;           // of one triangle
    std::int64_t non_manifold_edges = 0;       // of three or more
    std::int64_t components = 0;               // connected by points
    bool closed = false;                       // no boundary edge (and there are triangles)
    Point low, high;                           // corners of the bounding box, in metres; zero without sound triangles
    // Numbers of the first few triangles of each fault.
    std::vector<std::int64_t> first_duplicates, first_bad_indices, first_not_finite, first_without_area,
        first_coincident_centroids;

    bool sound() const noexcept;  // a matrix can be made: no duplicates, nothing bad, not finite, without area
};

MeshReport inspect(const Mesh& mesh);  // never throws for what a mesh holds

// What there is to say, a sentence a line: "1,254 duplicate triangles (12, 40, ...)"; nothing is said of zeros, but
// whether the mesh is closed always is.
std::string describe(const MeshReport& report);

struct CleanOptions {
    bool refuse_duplicates = false;    // else they are removed, and the report counts them
    bool refuse_open = false;          // a mesh with boundary edges
    bool refuse_non_manifold = false;
};

// The mesh without duplicate triangles and unused vertices, vertices of the same place merged; order stays. `report` is
// of the mesh as given. Throws Error{invalid_argument} naming numbers of triangles: for what cannot be mended (bad
// indices, numbers that are not finite, no area, coincident centroids, duplicates of different value) and for what
// options refuse. The report is filled in then, too.
Mesh clean(const Mesh& mesh, const CleanOptions& options, MeshReport& report);

}  // namespace penstock::hmatrix
