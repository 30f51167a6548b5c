// HACApK's input: text that consists of numbers only. It lists nodes, faces with corners from 0, and for each face
// integer and real parameters. The first real parameter is the potential in volts.
#include <array>

#include "hmatrix/geometry/read/readers.hpp"

namespace penstock::hmatrix {
namespace {

struct Shape {
    std::int64_t faces = 0, integers = 0, reals = 0;
};

Shape shape_of(Scanner& scanner) {
    Shape shape;
    shape.faces = scanner.count("faces", 6);
    const std::int64_t corners = scanner.integer("nodes of a face");
    if (corners != 3) scanner.refuse_line("faces of " + std::to_string(corners) + " nodes; Penstock reads triangles");
    shape.integers = scanner.count("integer parameters of a face", 2);
    shape.reals = scanner.count("real parameters of a face", 2);
    return shape;
}

}  // namespace

Mesh read_pbf(Scanner& scanner, double unit_metres) {
    MeshBuilder builder(scanner);
    const std::int64_t nodes = scanner.count("nodes", 6);
    builder.mesh().vertices.reserve(static_cast<std::size_t>(nodes));
    for (std::int64_t i = 0; i < nodes; ++i) {
        const double x = scanner.number("x"), y = scanner.number("y"), z = scanner.number("z");
        builder.vertex(x, y, z);
    }
    const Shape shape = shape_of(scanner);
    builder.mesh().triangles.reserve(static_cast<std::size_t>(shape.faces));
    for (std::int64_t i = 0; i < shape.faces; ++i) {
        std::array<std::int64_t, 3> face{};
        for (std::int64_t& corner : face) corner = scanner.integer("a corner of a face");
        builder.face(face);
    }
    for (std::int64_t i = 0; i < shape.faces; ++i) {
        for (std::int64_t k = 0; k < shape.integers; ++k) scanner.integer("an integer parameter");
    }
    for (std::int64_t i = 0; i < shape.faces; ++i) {
        for (std::int64_t k = 0; k < shape.reals; ++k) {
            const double value = scanner.number("a real parameter");
            if (k == 0) builder.mesh().values.push_back(value);
        }
    }
    if (const auto extra = scanner.next_word()) {
        scanner.refuse_line("'" + shown(*extra) + "' follows the last parameter", "the counts do not fit the file");
    }
    return builder.finish(unit_metres);
}

}  // namespace penstock::hmatrix
