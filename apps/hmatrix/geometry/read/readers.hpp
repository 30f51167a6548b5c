// The readers of single formats, for read.cpp, and what they share.
//
// A Scanner walks through a file's bytes by lines, words or numbers. It knows its position, so that every refusal names
// the place. A MeshBuilder takes vertices and faces and checks what must hold for every mesh. The memory of both grows
// only with the bytes that the file really has.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "hmatrix/geometry/mesh.hpp"

namespace penstock::hmatrix {

class Scanner {
  public:
    Scanner(std::string_view bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}

    std::string_view bytes() const noexcept { return bytes_; }
    const std::string& name() const noexcept { return name_; }
    std::size_t offset() const noexcept { return at_; }
    std::size_t left() const noexcept { return bytes_.size() - at_; }
    std::int64_t line() const noexcept { return line_; }  // line number of the last word or line, from 1

    // Text. Lines end with LF, CRLF or CR. A comment runs from the character `comment` (0: none) to the end of its
    // line.
    bool next_line(std::string_view& line);
    std::optional<std::string_view> next_word(char comment = 0);  // white space and line ends separate words
    std::string_view word(const char* what, char comment = 0);    // refuses the end of the file
    double number(const char* what, char comment = 0);            // refuses a number that is not finite
    std::int64_t integer(const char* what, char comment = 0);
    // A count of items that each take at least `least_bytes` bytes of the rest of the file.
    std::int64_t count(const char* what, std::size_t least_bytes, char comment = 0);

    // Binary:
    void begin_binary() noexcept { binary_ = true; }  // from here on, refusals name byte offsets
    std::string_view take(std::size_t bytes, const char* what);
    void skip_line_end();  // skips LF, CRLF or CR after a header

    [[noreturn]] void refuse(const std::string& cause, const std::string& advice = {}) const;  // names the file only
    [[noreturn]] void refuse_line(const std::string& cause, const std::string& advice = {}) const;  // names line()
    // Names the line, or the byte offset.
    [[noreturn]] void refuse_here(const std::string& cause, const std::string& advice = {}) const;
    [[noreturn]] void refuse_offset(std::size_t offset, const std::string& cause, const std::string& advice = {}) const;

    double to_number(std::string_view text, const char* what) const;
    std::int64_t to_integer(std::string_view text, const char* what) const;
    void check_count(std::int64_t count, const char* what, std::size_t least_bytes) const;

  private:
    std::string_view bytes_;
    std::string name_;
    std::size_t at_ = 0;
    std::int64_t line_ = 1;
    std::int64_t next_line_ = 1;
    bool binary_ = false;
};

// The word as a message prints it: printable characters, and not too many.
std::string shown(std::string_view word);
// Splits off the first word of a line. Returns an empty word if there is none.
std::string_view first_word(std::string_view& line);

class MeshBuilder {
  public:
    explicit MeshBuilder(const Scanner& scanner) : scanner_(scanner) {}
    Mesh& mesh() noexcept { return mesh_; }

    void vertex(double x, double y, double z);
    // `corners` count from 0. finish() checks them against the vertices, because a file may list faces first.
    void face(std::span<const std::int64_t> corners);
    // Checks indices and coordinates, and scales to metres. Refuses a mesh without triangles.
    Mesh finish(double unit_metres);

  private:
    // The message for a triangle that names a vertex that does not exist.
    std::string bad_index(std::size_t triangle, std::int64_t index) const;
    const Scanner& scanner_;
    Mesh mesh_;
};

Mesh read_ply(Scanner& scanner, double unit_metres);
Mesh read_obj(Scanner& scanner, double unit_metres);
Mesh read_stl_text(Scanner& scanner, double unit_metres);
Mesh read_stl_binary(Scanner& scanner, double unit_metres);
Mesh read_off(Scanner& scanner, double unit_metres);
Mesh read_pbf(Scanner& scanner, double unit_metres);

}  // namespace penstock::hmatrix
