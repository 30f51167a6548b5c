// OBJ: one statement a line. The reader takes vertices and faces, and ignores texture, normals, groups and materials.
#include <algorithm>
#include <array>
#include <vector>

#include "hmatrix/geometry/read/readers.hpp"

namespace penstock::hmatrix {
namespace {

constexpr std::array<std::string_view, 18> kPassedOver = {"vt", "vn", "vp", "o", "g", "s", "mg", "l", "p", "mtllib",
                                                          "usemtl", "usemap", "maplib", "lod", "bevel", "c_interp",
                                                          "d_interp", "shadow_obj"};

// The vertex of "7", "7/1", "7//3" or "7/1/3", counted from 0.
std::int64_t corner(const Scanner& scanner, std::string_view word, std::int64_t vertices) {
    const std::string_view first = word.substr(0, word.find('/'));
    for (const char c : word.substr(first.size())) {
        if (c != '/' && c != '-' && (c < '0' || c > '9')) {
            scanner.refuse_line("'" + shown(word) + "' where a corner of a face should stand");
        }
    }
    const std::int64_t number = scanner.to_integer(first, "a corner of a face");
    if (number == 0) scanner.refuse_line("a face names vertex 0; OBJ counts from 1");
    if (number > vertices || number < -vertices) {
        scanner.refuse_line("a face names vertex " + std::to_string(number) + ", and " + std::to_string(vertices) +
                           " are defined before it");
    }
    return number > 0 ? number - 1 : vertices + number;
}

void take_vertex(const Scanner& scanner, std::string_view line, MeshBuilder& builder) {
    std::array<double, 3> at{};
    for (double& one : at) {
        const std::string_view word = first_word(line);
        if (word.empty()) scanner.refuse_line("a vertex of fewer than three coordinates");
        one = scanner.to_number(word, "a coordinate");
    }
    builder.vertex(at[0], at[1], at[2]);
}

void take_face(const Scanner& scanner, std::string_view line, MeshBuilder& builder, std::vector<std::int64_t>& face) {
    const auto vertices = static_cast<std::int64_t>(builder.mesh().vertices.size());
    face.clear();
    for (std::string_view word = first_word(line); !word.empty(); word = first_word(line)) {
        face.push_back(corner(scanner, word, vertices));
    }
    if (face.size() < 3) scanner.refuse_line("a face of " + std::to_string(face.size()) + " corners");
    builder.face(face);
}

// Reads one statement into `line`. A line that ends with a backslash continues in the next line; `joined` then holds
// the text of both.
bool next_statement(Scanner& scanner, std::string_view& line, std::string& joined) {
    if (!scanner.next_line(line)) return false;
    if (!line.ends_with('\\')) return true;
    joined.clear();
    while (line.ends_with('\\')) {
        joined.append(line.substr(0, line.size() - 1)).push_back(' ');
        line = {};
        if (!scanner.next_line(line)) break;
    }
    joined.append(line);
    line = joined;
    return true;
}

}  // namespace

Mesh read_obj(Scanner& scanner, double unit_metres) {
    MeshBuilder builder(scanner);
    std::string_view line;
    std::string joined;
    std::vector<std::int64_t> face;
    while (next_statement(scanner, line, joined)) {
        line = line.substr(0, line.find('#'));
        const std::string_view keyword = first_word(line);
        if (keyword == "v") {
            take_vertex(scanner, line, builder);
        } else if (keyword == "f") {
            take_face(scanner, line, builder, face);
        } else if (!keyword.empty() &&
                   std::find(kPassedOver.begin(), kPassedOver.end(), keyword) == kPassedOver.end()) {
            scanner.refuse_line("'" + shown(keyword) + "' is not an OBJ statement that Penstock reads");
        }
    }
    return builder.finish(unit_metres);
}

}  // namespace penstock::hmatrix
