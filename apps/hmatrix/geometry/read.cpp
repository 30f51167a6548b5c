// See read.hpp. This file reads the bytes of a path and recognises the format.
#include "hmatrix/geometry/read.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "hmatrix/geometry/read/readers.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

constexpr const char* kCheckDisk = "check the disk, or the server that holds the file";

[[noreturn]] void fail(const char* operation, const std::string& path, const char* advice) {
    ErrorInfo info = errno_info(operation, path, errno);
    info.advice = advice;
    throw Error(std::move(info));
}

class Descriptor {
  public:
    explicit Descriptor(const std::string& path) : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
        if (number_ < 0) fail("open mesh", path, "check the path and its permissions");
    }
    ~Descriptor() { ::close(number_); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int number() const noexcept { return number_; }

  private:
    int number_;
};

struct Refusal {
    ErrorCode code;
    const char* cause;
    const char* advice;
};

[[noreturn]] void refuse_file(const std::string& name, const Refusal& why) {
    ErrorInfo info;
    info.code = why.code;
    info.operation = "read mesh";
    info.file = name;
    info.cause = why.cause;
    info.advice = why.advice;
    throw Error(std::move(info));
}

// A device may have no end, as /dev/zero, or be a whole disk.
void refuse_devices(const struct stat& about, const std::string& path) {
    if (!S_ISCHR(about.st_mode) && !S_ISBLK(about.st_mode)) return;
    refuse_file(path, {ErrorCode::invalid_argument, "it is a device", "give a file, or a pipe with a mesh"});
}

// Reads a file, or a pipe, to its end.
std::string bytes_of(const std::string& path) {
    const Descriptor file(path);
    struct stat about {};
    if (::fstat(file.number(), &about) != 0) fail("read mesh", path, kCheckDisk);
    refuse_devices(about, path);
    std::string bytes;
    if (S_ISREG(about.st_mode)) bytes.reserve(static_cast<std::size_t>(about.st_size));
    std::array<char, 1 << 16> piece;
    for (;;) {
        const ssize_t got = ::read(file.number(), piece.data(), piece.size());
        if (got == 0) return bytes;
        if (got > 0) bytes.append(piece.data(), static_cast<std::size_t>(got));
        if (got < 0 && errno != EINTR) fail("read mesh", path, kCheckDisk);
    }
}

std::string ending(const std::string& name) {
    const std::size_t dot = name.rfind('.'), slash = name.rfind('/');
    if (dot == std::string::npos || (slash != std::string::npos && dot < slash)) return {};
    std::string found = name.substr(dot + 1);
    for (char& c : found) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return found;
}

// The first word that is not in a comment, or "" if there is none. Every text format begins with a typical word.
std::string_view opening(std::string_view bytes) {
    Scanner scanner(bytes.substr(0, 65536), {});
    return scanner.next_word('#').value_or(std::string_view{});
}

bool is_binary_stl(std::string_view bytes) {
    if (bytes.size() < 84) return false;
    std::array<unsigned char, 4> count;
    std::memcpy(count.data(), bytes.data() + 80, 4);
    const std::uint64_t triangles = count[0] | count[1] << 8 | count[2] << 16 | std::uint64_t{count[3]} << 24;
    return bytes.size() == 84 + 50 * triangles;
}

bool ends_with_off(std::string_view word) {
    return word == "OFF" || (word.size() <= 8 && word.ends_with("OFF") &&
                             std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isalnum(c); }));
}

bool is_obj_word(std::string_view word) {
    const std::array<std::string_view, 9> words = {"v", "vt", "vn", "f", "o", "g", "s", "mtllib", "usemtl"};
    return std::find(words.begin(), words.end(), word) != words.end();
}

using Reader = Mesh (*)(Scanner&, double);

Reader reader_by_content(std::string_view bytes) {
    if (bytes.starts_with("ply") && bytes.size() > 3 && (bytes[3] == '\n' || bytes[3] == '\r')) return read_ply;
    if (is_binary_stl(bytes)) return read_stl_binary;
    const std::string_view word = opening(bytes);
    if (ends_with_off(word)) return read_off;
    if (word == "solid") return read_stl_text;
    return is_obj_word(word) ? read_obj : nullptr;
}

Reader reader_by_ending(const std::string& name) {
    const std::string found = ending(name);
    if (found == "ply") return read_ply;
    if (found == "obj") return read_obj;
    if (found == "stl") return read_stl_binary;
    if (found == "off" || found == "coff") return read_off;
    return found == "pbf" ? read_pbf : nullptr;
}

}  // namespace

Mesh parse_mesh(std::string_view bytes, const std::string& name, const ReadOptions& options) {
    if (!std::isfinite(options.unit_metres) || options.unit_metres <= 0) {
        throw Error(ErrorCode::invalid_argument, "read mesh",
                    "a unit of " + std::to_string(options.unit_metres) + " m; it must be above 0");
    }
    constexpr std::string_view kMark = "\xef\xbb\xbf";  // byte order mark of UTF-8, which some editors write
    if (bytes.starts_with(kMark)) bytes.remove_prefix(kMark.size());
    Scanner scanner(bytes, name);
    if (bytes.empty()) scanner.refuse("the file is empty");
    Reader reader = reader_by_content(bytes);
    if (reader == nullptr) reader = reader_by_ending(name);
    if (reader == nullptr) {
        refuse_file(name, {ErrorCode::unsupported, "neither content nor name tells a format that Penstock reads",
                           "give PLY, OBJ, STL, OFF or HACApK's .pbf"});
    }
    return reader(scanner, options.unit_metres);
}

Mesh read_mesh(const std::string& path, const ReadOptions& options) {
    return parse_mesh(bytes_of(path), path, options);
}

}  // namespace penstock::hmatrix
