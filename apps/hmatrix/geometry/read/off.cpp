// OFF and its variants: three counts, then a line for each vertex and each face. The reader ignores the rest of these
// lines.
#include <algorithm>
#include <vector>

#include "hmatrix/geometry/read/readers.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

constexpr char kComment = '#';

// OFF may have the prefixes ST, C and N, in this order. Other prefixes change the number of coordinates and are
// refused.
void check_kind(const Scanner& scanner, std::string_view word) {
    std::string_view prefix = word.substr(0, word.size() - std::min<std::size_t>(3, word.size()));
    if (!word.ends_with("OFF")) scanner.refuse_line("'" + shown(word) + "' where OFF should stand");
    for (const std::string_view known : {"ST", "C", "N"}) {
        if (prefix.starts_with(known)) prefix.remove_prefix(known.size());
    }
    if (prefix.empty()) return;
    ErrorInfo info;
    info.code = ErrorCode::unsupported;
    info.operation = "read mesh";
    info.file = scanner.name();
    info.cause = shown(word) + " has vertices that do not have three coordinates";
    throw Error(std::move(info));
}

void refuse_binary(const Scanner& scanner) {
    ErrorInfo info;
    info.code = ErrorCode::unsupported;
    info.operation = "read mesh";
    info.file = scanner.name();
    info.cause = "Penstock does not read binary OFF";
    info.advice = "write it as text, or as binary PLY";
    throw Error(std::move(info));
}

// The next line that is not empty, without its comment.
std::string_view next_full_line(Scanner& scanner, const std::string& what) {
    std::string_view line;
    while (scanner.next_line(line)) {
        line = line.substr(0, line.find(kComment));
        std::string_view rest = line;
        if (!first_word(rest).empty()) return line;
    }
    scanner.refuse_line("the file ends before " + what, "the file is cut off, or its counts are wrong");
}

std::string_view word_of(const Scanner& scanner, std::string_view& line, const std::string& what) {
    const std::string_view word = first_word(line);
    if (word.empty()) scanner.refuse_line("the line ends before " + what);
    return word;
}

struct OffCounts {
    std::int64_t vertices = 0, faces = 0;
};

OffCounts counts_of(Scanner& scanner) {
    std::string_view line = next_full_line(scanner, "the counts"), rest = line;
    const std::string_view kind = first_word(rest);
    check_kind(scanner, kind);
    std::string_view after = rest;
    if (first_word(after) == "BINARY") refuse_binary(scanner);
    if (first_word(after = rest).empty()) rest = next_full_line(scanner, "the counts");
    OffCounts counts;
    counts.vertices = scanner.to_integer(word_of(scanner, rest, "the number of vertices"), "the number of vertices");
    counts.faces = scanner.to_integer(word_of(scanner, rest, "the number of faces"), "the number of faces");
    scanner.check_count(counts.vertices, "vertices", 6);
    scanner.check_count(counts.faces, "faces", 8);
    return counts;
}

void take_face(const Scanner& scanner, std::string_view line, MeshBuilder& builder, std::vector<std::int64_t>& face) {
    const std::int64_t corners = scanner.to_integer(first_word(line), "the number of corners");
    if (corners < 3 || corners > static_cast<std::int64_t>(line.size())) {
        scanner.refuse_line("a face of " + std::to_string(corners) + " corners", "faces need three or more, all there");
    }
    face.clear();
    for (std::int64_t k = 0; k < corners; ++k) {
        face.push_back(scanner.to_integer(word_of(scanner, line, "all corners of a face"), "a corner of a face"));
    }
    builder.face(face);
}

}  // namespace

Mesh read_off(Scanner& scanner, double unit_metres) {
    const OffCounts counts = counts_of(scanner);
    MeshBuilder builder(scanner);
    builder.mesh().vertices.reserve(static_cast<std::size_t>(counts.vertices));
    builder.mesh().triangles.reserve(static_cast<std::size_t>(counts.faces));
    for (std::int64_t i = 0; i < counts.vertices; ++i) {
        std::string_view line = next_full_line(scanner, "vertex " + std::to_string(i));
        const double x = scanner.to_number(word_of(scanner, line, "x"), "x");
        const double y = scanner.to_number(word_of(scanner, line, "y"), "y");
        const double z = scanner.to_number(word_of(scanner, line, "z"), "z");
        builder.vertex(x, y, z);
    }
    std::vector<std::int64_t> face;
    for (std::int64_t i = 0; i < counts.faces; ++i) {
        take_face(scanner, next_full_line(scanner, "face " + std::to_string(i)), builder, face);
    }
    if (const auto extra = scanner.next_word(kComment)) {
        scanner.refuse_line("'" + shown(*extra) + "' follows the last face", "the counts do not fit the file");
    }
    return builder.finish(unit_metres);
}

}  // namespace penstock::hmatrix
