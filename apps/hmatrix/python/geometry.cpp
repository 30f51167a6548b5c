// Meshes in Python. Functions take and return a mesh as arrays: vertices, triangles, and one value a triangle or None.
#include "hmatrix/geometry/clean.hpp"
#include "hmatrix/geometry/read.hpp"
#include "hmatrix/geometry/shapes.hpp"
#include "hmatrix/geometry/write.hpp"
#include "hmatrix/python/arrays.hpp"

namespace penstock::python {
namespace {

nb::tuple mesh_to_arrays(const hmatrix::Mesh& mesh) {
    std::vector<double> corners;
    corners.reserve(3 * mesh.vertices.size());
    for (const hmatrix::Point& point : mesh.vertices) corners.insert(corners.end(), {point.x, point.y, point.z});
    std::vector<std::int64_t> triangles;
    triangles.reserve(3 * mesh.triangles.size());
    for (const hmatrix::Triangle& triangle : mesh.triangles) {
        triangles.insert(triangles.end(), triangle.begin(), triangle.end());
    }
    const nb::object values = mesh.values.empty()
                                  ? nb::none()
                                  : nb::object(nb::cast(to_numpy(mesh.values, {mesh.values.size()})));
    return nb::make_tuple(to_numpy(std::move(corners), {mesh.vertices.size(), 3}),
                          to_numpy(std::move(triangles), {mesh.triangles.size(), 3}), values);
}

hmatrix::Mesh with_values(const Doubles& vertices, const Integers& triangles, nb::handle values) {
    hmatrix::Mesh mesh = mesh_of(vertices, triangles);
    if (values.is_none()) return mesh;
    const auto numbers = nb::cast<Doubles>(values);
    if (numbers.size() != mesh.triangles.size()) {
        throw Error(ErrorCode::invalid_argument, "take a mesh",
                    std::to_string(numbers.size()) + " values for " + std::to_string(mesh.triangles.size()) +
                        " triangles");
    }
    mesh.values.assign(numbers.data(), numbers.data() + numbers.size());
    return mesh;
}

nb::dict report_to_dict(const hmatrix::MeshReport& report) {
    nb::dict fields;
    fields["vertices"] = report.vertices;
    fields["triangles"] = report.triangles;
    fields["coincident_vertices"] = report.coincident_vertices;
    fields["unused_vertices"] = report.unused_vertices;
    fields["duplicate_triangles"] = report.duplicate_triangles;
    fields["without_area"] = report.without_area;
    fields["not_finite"] = report.not_finite;
    fields["coincident_centroids"] = report.coincident_centroids;
    fields["boundary_edges"] = report.boundary_edges;
    fields["non_manifold_edges"] = report.non_manifold_edges;
    fields["components"] = report.components;
    fields["closed"] = report.closed;
    fields["sound"] = report.sound();
    fields["low"] = nb::make_tuple(report.low.x, report.low.y, report.low.z);
    fields["high"] = nb::make_tuple(report.high.x, report.high.y, report.high.z);
    fields["text"] = hmatrix::describe(report);
    return fields;
}

nb::tuple read(nb::handle path, double unit_metres) {
    const std::string name = file_name(path, "read a mesh");
    hmatrix::Mesh mesh;
    {
        const GilReleased release;
        mesh = hmatrix::read_mesh(name, {unit_metres});
    }
    return mesh_to_arrays(mesh);
}

nb::tuple clean(const Doubles& vertices, const Integers& triangles, nb::handle values, bool refuse_duplicates) {
    hmatrix::CleanOptions options;
    options.refuse_duplicates = refuse_duplicates;
    hmatrix::MeshReport report;
    const hmatrix::Mesh mesh = hmatrix::clean(with_values(vertices, triangles, values), options, report);
    const nb::tuple arrays = mesh_to_arrays(mesh);
    return nb::make_tuple(arrays[0], arrays[1], arrays[2], report_to_dict(report));
}

// `numbers` maps a name to an array of one value a triangle.
void write(nb::handle path, const Doubles& vertices, const Integers& triangles, const nb::dict& numbers) {
    std::vector<hmatrix::FaceNumbers> faces;
    std::vector<Doubles> kept;
    for (const auto& [name, values] : numbers) {
        kept.push_back(nb::cast<Doubles>(values));
        faces.push_back({nb::cast<std::string>(name), values_of(kept.back())});
    }
    const std::string name = file_name(path, "write a surface");
    const hmatrix::Mesh mesh = mesh_of(vertices, triangles);
    const GilReleased release;
    hmatrix::write_surface(name, mesh, faces);
}

}  // namespace

hmatrix::Mesh mesh_of(const Doubles& vertices, const Integers& triangles) {
    if (vertices.ndim() != 2 || vertices.shape(1) != 3 || triangles.ndim() != 2 || triangles.shape(1) != 3) {
        throw Error(ErrorCode::invalid_argument, "take a mesh",
                    "vertices and triangles must be arrays of shape (n, 3) and (m, 3)");
    }
    hmatrix::Mesh mesh;
    const auto corners = static_cast<std::int64_t>(vertices.shape(0));
    for (std::int64_t i = 0; i < corners; ++i) {
        mesh.vertices.push_back({vertices.data()[3 * i], vertices.data()[3 * i + 1], vertices.data()[3 * i + 2]});
    }
    for (std::size_t t = 0; t < triangles.shape(0); ++t) {
        hmatrix::Triangle triangle{};
        for (int c = 0; c < 3; ++c) {
            const std::int64_t corner = triangles.data()[3 * t + c];
            if (corner < 0 || corner >= corners) {
                throw Error(ErrorCode::invalid_argument, "take a mesh",
                            "triangle " + std::to_string(t) + " has corner " + std::to_string(corner) + " of " +
                                std::to_string(corners));
            }
            triangle[c] = static_cast<std::int32_t>(corner);
        }
        mesh.triangles.push_back(triangle);
    }
    return mesh;
}

void bind_geometry(nb::module_& module) {
    module.def("read_mesh", &read);
    module.def("shape_names", &hmatrix::shape_names);
    module.def("shape", [](const std::string& name, std::int64_t triangles) {
        return mesh_to_arrays(hmatrix::shape(name, triangles));
    });
    module.def("inspect", [](const Doubles& vertices, const Integers& triangles) {
        return report_to_dict(hmatrix::inspect(mesh_of(vertices, triangles)));
    });
    module.def("clean", &clean, nb::arg(), nb::arg(), nb::arg().none(), nb::arg());
    module.def("write_surface", &write);
    module.def("areas", [](const Doubles& vertices, const Integers& triangles) {
        std::vector<double> areas = hmatrix::areas(mesh_of(vertices, triangles));
        const std::size_t count = areas.size();
        return to_numpy(std::move(areas), {count});
    });
}

}  // namespace penstock::python
