// See clean.hpp. This file decides what clean() refuses and what it removes.
#include "hmatrix/geometry/clean.hpp"

#include <cmath>

#include "hmatrix/geometry/points.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

[[noreturn]] void refuse_mesh(const std::string& cause, const std::string& advice) {
    throw Error(ErrorCode::invalid_argument, "clean mesh", cause, advice);
}

void refuse_some(std::int64_t count, const std::vector<std::int64_t>& first, const std::string& what,
                 const std::string& advice) {
    if (count == 0) return;
    std::string numbers;
    for (const std::int64_t one : first) numbers += (numbers.empty() ? "" : ", ") + std::to_string(one);
    if (count > static_cast<std::int64_t>(first.size())) numbers += ", ...";
    refuse_mesh(std::to_string(count) + (count == 1 ? " triangle " : " triangles ") + what + ": " + numbers, advice);
}

void refuse_faults(const MeshReport& report, const CleanOptions& options) {
    if (report.triangles == 0) refuse_mesh("the mesh has no triangles", {});
    refuse_some(report.bad_indices, report.first_bad_indices, "with a vertex that is not there", {});
    refuse_some(report.not_finite, report.first_not_finite,
                "with a corner that is not a finite number, or beyond 1e60 m", {});
    refuse_some(report.without_area, report.first_without_area, "of no area",
                "remove them with a mesh tool, or merge the vertices of their short edges");
    if (options.refuse_duplicates) {
        refuse_some(report.duplicate_triangles, report.first_duplicates, "that repeat others",
                    "let them be removed, or remove them with a mesh tool");
    }
    refuse_some(report.coincident_centroids, report.first_coincident_centroids, "with the centroid of another",
                "the matrix would be singular: the triangles cross, or one is cut twice");
    if (options.refuse_open && !report.closed) {
        refuse_mesh("the mesh is open: " + std::to_string(report.boundary_edges) + " edges belong to one triangle", {});
    }
    if (options.refuse_non_manifold && report.non_manifold_edges > 0) {
        refuse_mesh(std::to_string(report.non_manifold_edges) + " edges belong to three or more triangles", {});
    }
}

void check_values(const Mesh& mesh, const Judged& judged) {
    if (mesh.values.empty()) return;
    if (mesh.values.size() != mesh.triangles.size()) {
        refuse_mesh(
            std::to_string(mesh.values.size()) + " values for " + std::to_string(mesh.triangles.size()) + " triangles",
            "give one a triangle, or none");
    }
    for (std::size_t t = 0; t < mesh.values.size(); ++t) {
        if (!std::isfinite(mesh.values[t])) {
            refuse_mesh("triangle " + std::to_string(t) + " has a value that is not a finite number", {});
        }
        const auto original = static_cast<std::size_t>(judged.original[t]);
        if (mesh.values[t] == mesh.values[original]) continue;
        refuse_mesh("triangles " + std::to_string(original) + " and " + std::to_string(t) +
                        " lie in the same place with different values",
                    "give them one value");
    }
}

// Keeps the sound triangles, and numbers their vertices anew, one for each point.
Mesh kept(const Mesh& mesh, const std::vector<std::int32_t>& place, const Judged& judged) {
    constexpr std::int32_t kNew = -1;
    std::vector<std::int32_t> number(mesh.vertices.size(), kNew);
    std::vector<char> used(mesh.vertices.size());
    for (const Triangle& t : mesh.triangles) {
        for (const std::int32_t corner : t) used[static_cast<std::size_t>(place[static_cast<std::size_t>(corner)])] = 1;
    }
    Mesh made;
    for (std::size_t v = 0; v < mesh.vertices.size(); ++v) {
        if (used[v] == 0) continue;
        number[v] = static_cast<std::int32_t>(made.vertices.size());
        made.vertices.push_back(mesh.vertices[v]);
    }
    for (std::size_t t = 0; t < mesh.triangles.size(); ++t) {
        if (judged.faults[t] != Fault::none) continue;
        made.triangles.push_back(mesh.triangles[t]);
        for (std::int32_t& corner : made.triangles.back()) {
            corner = number[static_cast<std::size_t>(place[static_cast<std::size_t>(corner)])];
        }
        if (!mesh.values.empty()) made.values.push_back(mesh.values[t]);
    }
    return made;
}

}  // namespace

Mesh clean(const Mesh& mesh, const CleanOptions& options, MeshReport& report) {
    report = inspect(mesh);
    refuse_faults(report, options);
    const std::vector<std::int32_t> place = first_of_place(mesh.vertices);
    const Judged judged = judge(mesh, place);
    check_values(mesh, judged);
    return kept(mesh, place, judged);
}

}  // namespace penstock::hmatrix
