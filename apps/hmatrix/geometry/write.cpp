// See write.hpp. Numbers are written byte by byte, so the files are equal on every machine.
#include "hmatrix/geometry/write.hpp"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdint>
#include <utility>

#include "hmatrix/geometry/read/whole_file.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

[[noreturn]] void refuse_to_write(const std::string& path, const std::string& cause) {
    ErrorInfo info;
    info.code = ErrorCode::invalid_argument;
    info.operation = "write surface";
    info.file = path;
    info.cause = cause;
    throw Error(std::move(info));
}

void check(const std::string& path, const Mesh& mesh, const std::vector<FaceNumbers>& numbers) {
    for (const FaceNumbers& one : numbers) {
        const bool plain = !one.name.empty() && std::all_of(one.name.begin(), one.name.end(), [](unsigned char c) {
            return std::isalnum(c) || c == '_';
        });
        if (!plain) refuse_to_write(path, "'" + one.name + "' is not a name for numbers: use letters, digits and _");
        if (one.values.size() != mesh.triangles.size()) {
            refuse_to_write(path, std::to_string(one.values.size()) + " numbers '" + one.name + "' for " +
                                      std::to_string(mesh.triangles.size()) + " triangles");
        }
    }
}

// Appends a word, with its most significant byte first (big endian) or last.
void put(WholeFile& file, std::uint64_t word, int bytes, std::endian order) {
    char raw[8];
    for (int k = 0; k < bytes; ++k) {
        const int shift = 8 * (order == std::endian::big ? bytes - 1 - k : k);
        raw[k] = static_cast<char>(word >> shift);
    }
    file.append({raw, static_cast<std::size_t>(bytes)});
}

void put(WholeFile& file, double value, std::endian order) { put(file, std::bit_cast<std::uint64_t>(value), 8, order); }

void put(WholeFile& file, std::int32_t value, std::endian order) {
    put(file, static_cast<std::uint32_t>(value), 4, order);
}

void put_points(WholeFile& file, const Mesh& mesh, std::endian order) {
    for (const Point& p : mesh.vertices) {
        for (const double one : {p.x, p.y, p.z}) put(file, one, order);
    }
}

}  // namespace

void write_vtk(const std::string& path, const Mesh& mesh, const std::vector<FaceNumbers>& numbers) {
    check(path, mesh, numbers);
    const std::endian order = std::endian::big;
    const std::string points = std::to_string(mesh.vertices.size()), faces = std::to_string(mesh.triangles.size());
    WholeFile file(path);
    file.append("# vtk DataFile Version 3.0\nsurface of triangles, metres\nBINARY\nDATASET POLYDATA\n");
    file.append("POINTS " + points + " double\n");
    put_points(file, mesh, order);
    file.append("\nPOLYGONS " + faces + " " + std::to_string(4 * mesh.triangles.size()) + "\n");
    for (const Triangle& t : mesh.triangles) {
        put(file, 3, order);
        for (const std::int32_t corner : t) put(file, corner, order);
    }
    file.append("\nCELL_DATA " + faces + "\n");
    for (const FaceNumbers& one : numbers) {
        file.append("SCALARS " + one.name + " double 1\nLOOKUP_TABLE default\n");
        for (const double value : one.values) put(file, value, order);
        file.append("\n");
    }
    file.commit();
}

void write_ply(const std::string& path, const Mesh& mesh, const std::vector<FaceNumbers>& numbers) {
    check(path, mesh, numbers);
    const std::endian order = std::endian::little;
    WholeFile file(path);
    file.append("ply\nformat binary_little_endian 1.0\ncomment lengths in metres\nelement vertex " +
                std::to_string(mesh.vertices.size()) +
                "\nproperty double x\nproperty double y\nproperty double z\nelement face " +
                std::to_string(mesh.triangles.size()) + "\nproperty list uchar int vertex_indices\n");
    for (const FaceNumbers& one : numbers) file.append("property double " + one.name + "\n");
    file.append("end_header\n");
    put_points(file, mesh, order);
    for (std::size_t t = 0; t < mesh.triangles.size(); ++t) {
        put(file, 3, 1, order);
        for (const std::int32_t corner : mesh.triangles[t]) put(file, corner, order);
        for (const FaceNumbers& one : numbers) put(file, one.values[t], order);
    }
    file.commit();
}

void write_surface(const std::string& path, const Mesh& mesh, const std::vector<FaceNumbers>& numbers) {
    if (path.ends_with(".vtk")) return write_vtk(path, mesh, numbers);
    if (path.ends_with(".ply")) return write_ply(path, mesh, numbers);
    refuse_to_write(path, "surfaces are written as .vtk or .ply");
}

}  // namespace penstock::hmatrix
