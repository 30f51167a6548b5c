// Any bytes as a mesh file of any format. The reader gives a mesh with valid triangles and vertices, or an Error. A
// mesh that was read can be inspected, and can be cleaned or is refused.
#include <cmath>
#include <string_view>

#include "hmatrix/geometry/clean.hpp"
#include "hmatrix/geometry/read.hpp"
#include "input.hpp"
#include "penstock/error.hpp"

namespace {

using penstock::fuzz::promise;
using penstock::hmatrix::Mesh;

void check_whole(const Mesh& mesh) {
    promise(!mesh.triangles.empty(), "a mesh has triangles");
    promise(mesh.values.empty() || mesh.values.size() == mesh.triangles.size(), "a value a triangle, or none");
    for (const auto& triangle : mesh.triangles) {
        for (const std::int32_t corner : triangle) {
            promise(corner >= 0 && static_cast<std::size_t>(corner) < mesh.vertices.size(), "corners are there");
        }
    }
    for (const auto& p : mesh.vertices) {
        promise(std::isfinite(p.x) && std::isfinite(p.y) && std::isfinite(p.z), "coordinates are finite");
    }
}

void clean_or_refuse(const Mesh& mesh) {
    penstock::hmatrix::MeshReport report;
    try {
        const Mesh made = penstock::hmatrix::clean(mesh, {}, report);
        check_whole(made);
        promise(penstock::hmatrix::inspect(made).sound(), "a cleaned mesh is sound");
        promise(made.unknowns() + report.duplicate_triangles == mesh.unknowns(), "only duplicates are removed");
    } catch (const penstock::Error& error) {
        promise(error.code() == penstock::ErrorCode::invalid_argument, "a mesh that is not sound is refused");
    }
    promise(!penstock::hmatrix::describe(report).empty(), "there is a report either way");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
    const std::string_view text(reinterpret_cast<const char*>(data), bytes);
    for (const char* name : {"fuzz", "fuzz.pbf", "fuzz.ply", "fuzz.obj", "fuzz.stl", "fuzz.off"}) {
        try {
            const Mesh mesh = penstock::hmatrix::parse_mesh(text, name);
            check_whole(mesh);
            clean_or_refuse(mesh);
        } catch (const penstock::Error& error) {
            const bool expected = error.code() == penstock::ErrorCode::invalid_argument ||
                                  error.code() == penstock::ErrorCode::unsupported;
            promise(expected, "what is no mesh is an invalid argument, or unsupported");
            promise(error.info().file == name && !error.info().cause.empty(), "with the file's name and the cause");
        }
    }
    return 0;
}
