// Inspects a mesh, and makes a mesh that a solver can use.
//
// All checks compare vertices by their coordinates, not by their indices: vertices with equal coordinates are one
// point. Triangles with the same three points, in any order, are duplicates. Duplicates make equal rows, and so a
// singular matrix.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hmatrix/geometry/mesh.hpp"

namespace penstock::hmatrix {

struct MeshReport {
    std::int64_t vertices = 0, triangles = 0;  // counts of the mesh as given
    std::int64_t coincident_vertices = 0;      // vertices with the coordinates of an earlier vertex
    std::int64_t unused_vertices = 0;          // vertices of no triangle
    std::int64_t duplicate_triangles = 0;      // all but the first of each set of equal triangles
    std::int64_t bad_indices = 0;              // triangles with an index outside the vertices
    std::int64_t not_finite = 0;               // triangles with a corner that is not finite or beyond 1e60 m
    std::int64_t without_area = 0;             // finite triangles whose corners lie on a line, or nearly so
    std::int64_t coincident_centroids = 0;     // triangles, not duplicates, with the centroid of an earlier triangle
    // Counts over the sound triangles, without their duplicates:
    std::int64_t boundary_edges = 0;      // edges of exactly one triangle
    std::int64_t non_manifold_edges = 0;  // edges of three or more triangles
    std::int64_t components = 0;          // sets of triangles that are connected by points
    bool closed = false;                  // there are triangles and no boundary edges
    Point low, high;                      // corners of the bounding box, in metres; zero if no triangle is sound
    // Indices of the first few triangles with each fault.
    std::vector<std::int64_t> first_duplicates, first_bad_indices, first_not_finite, first_without_area,
        first_coincident_centroids;

    bool sound() const noexcept;  // no faults above, so a matrix can be made
};

MeshReport inspect(const Mesh& mesh);  // does not throw for any content of the mesh

// Describes the report, one statement a line, e.g. "1,254 duplicate triangles (12, 40, ...)". It leaves out counts of
// zero, but always says whether the mesh is closed.
std::string describe(const MeshReport& report);

struct CleanOptions {
    bool refuse_duplicates = false;  // false: clean() removes them, and the report counts them
    bool refuse_open = false;        // refuse a mesh with boundary edges
    bool refuse_non_manifold = false;
};

// Returns the mesh without duplicate triangles and unused vertices, and merges vertices with equal coordinates. The
// order stays. `report` describes the given mesh, also if clean() throws. Throws Error{invalid_argument} that names
// triangles, for faults that cannot be repaired: bad indices, numbers that are not finite, no area, coincident
// centroids, and duplicates with different values. Also throws for what `options` refuse.
Mesh clean(const Mesh& mesh, const CleanOptions& options, MeshReport& report);

}  // namespace penstock::hmatrix
