// PLY: a header that describes elements with named, typed properties, then their values as text or binary.
//
// The reader finds vertices and faces by name, and uses the header to skip everything else.
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <vector>

#include "hmatrix/geometry/read/readers.hpp"

namespace penstock::hmatrix {
namespace {

enum class PlyEncoding { text, little, big };

struct Type {
    const char* name;
    const char* other_name;
    std::size_t bytes;
    bool whole, is_signed;
};

constexpr std::array<Type, 8> kTypes = {{{"char", "int8", 1, true, true},
                                         {"uchar", "uint8", 1, true, false},
                                         {"short", "int16", 2, true, true},
                                         {"ushort", "uint16", 2, true, false},
                                         {"int", "int32", 4, true, true},
                                         {"uint", "uint32", 4, true, false},
                                         {"float", "float32", 4, false, true},
                                         {"double", "float64", 8, false, true}}};

struct Property {
    std::string name;
    const Type* type = nullptr;
    const Type* count = nullptr;  // type of the length if the property is a list, otherwise null
};

struct Element {
    std::string name;
    std::int64_t count = 0;
    std::vector<Property> properties;
};

struct Header {
    PlyEncoding encoding = PlyEncoding::text;
    std::vector<Element> elements;
};

const Type* type_from(const Scanner& scanner, std::string_view name) {
    for (const Type& type : kTypes) {
        if (name == type.name || name == type.other_name) return &type;
    }
    scanner.refuse_line("'" + shown(name) + "' is not a PLY type");
}

PlyEncoding encoding_from(const Scanner& scanner, std::string_view line) {
    const std::string_view name = first_word(line), version = first_word(line);
    if (version != "1.0") scanner.refuse_line("PLY version '" + shown(version) + "'; Penstock reads 1.0");
    if (name == "ascii") return PlyEncoding::text;
    if (name == "binary_little_endian") return PlyEncoding::little;
    if (name == "binary_big_endian") return PlyEncoding::big;
    scanner.refuse_line("'" + shown(name) + "' is not a PLY format",
                       "it should be ascii, binary_little_endian or binary_big_endian");
}

Property property_from(const Scanner& scanner, std::string_view line) {
    Property property;
    std::string_view word = first_word(line);
    if (word == "list") {
        property.count = type_from(scanner, first_word(line));
        if (!property.count->whole) scanner.refuse_line("the length of a list is a whole number");
        word = first_word(line);
    }
    property.type = type_from(scanner, word);
    property.name = first_word(line);
    if (property.name.empty()) scanner.refuse_line("a property without a name");
    return property;
}

// Reads one line of the header. Returns false at the end of the header.
bool take_line(const Scanner& scanner, std::string_view line, Header& header, bool& described) {
    const std::string_view keyword = first_word(line);
    if (keyword == "end_header") return false;
    if (keyword == "format") {
        header.encoding = encoding_from(scanner, line);
        described = true;
    } else if (keyword == "element") {
        const std::string_view name = first_word(line), count = first_word(line);
        header.elements.push_back({std::string(name), scanner.to_integer(count, "the number of elements"), {}});
    } else if (keyword == "property") {
        if (header.elements.empty()) scanner.refuse_line("a property before the first element");
        header.elements.back().properties.push_back(property_from(scanner, line));
    } else if (keyword != "comment" && keyword != "obj_info" && !keyword.empty()) {
        scanner.refuse_line("'" + shown(keyword) + "' is not a keyword of a PLY header");
    }
    return true;
}

Header header_of(Scanner& scanner) {
    Header header;
    std::string_view line;
    bool described = false;
    if (!scanner.next_line(line) || line != "ply") scanner.refuse("it does not begin with the line 'ply'");
    do {
        if (!scanner.next_line(line)) scanner.refuse_line("the header has no end", "the file is cut off");
    } while (take_line(scanner, line, header, described));
    if (!described) scanner.refuse_line("the header names no format");
    return header;
}

// The smallest number of bytes that one item can take.
std::size_t least_bytes(const Element& element, PlyEncoding encoding) {
    std::size_t bytes = 0;
    for (const Property& property : element.properties) {
        const Type& first = property.count != nullptr ? *property.count : *property.type;
        bytes += encoding == PlyEncoding::text ? 2 : first.bytes;
    }
    return bytes;
}

double number_from(std::string_view bytes, const Type& type, bool swap) {
    std::array<char, 8> raw{};
    for (std::size_t k = 0; k < type.bytes; ++k) raw[k] = bytes[swap ? type.bytes - 1 - k : k];
    const auto as = [&](auto value) {
        std::memcpy(&value, raw.data(), sizeof value);
        return static_cast<double>(value);
    };
    switch (type.bytes) {
        case 1: return type.is_signed ? as(std::int8_t{}) : as(std::uint8_t{});
        case 2: return type.is_signed ? as(std::int16_t{}) : as(std::uint16_t{});
        case 4: return !type.whole ? as(float{}) : type.is_signed ? as(std::int32_t{}) : as(std::uint32_t{});
        default: return as(double{});
    }
}

class Body {
  public:
    Body(Scanner& scanner, PlyEncoding encoding) : scanner_(scanner), text_(encoding == PlyEncoding::text) {
        swap_ = !text_ && (encoding == PlyEncoding::little) != (std::endian::native == std::endian::little);
    }

    double scalar(const Property& property) {
        const Type& type = *property.type;
        if (!text_) return number_from(scanner_.take(type.bytes, property.name.c_str()), type, swap_);
        const std::string_view word = scanner_.word(property.name.c_str());
        return scanner_.to_number(word, property.name.c_str());
    }

    std::int64_t list_length(const Property& property) {
        const std::size_t at = scanner_.offset();
        const std::int64_t length = whole(*property.count, "the length of a list");
        const std::size_t least = text_ ? 2 : property.type->bytes;
        if (length >= 0 && static_cast<std::uint64_t>(length) <= (scanner_.left() + 1) / least) return length;
        const std::string cause = "a list of " + std::to_string(length) + " " + property.name + " cannot be in the " +
                                  std::to_string(scanner_.left()) + " bytes that are left";
        if (text_) scanner_.refuse_line(cause);
        scanner_.refuse_offset(at, cause, "the file is cut off, or its byte order is not what it says");
    }

    void list(const Property& property, std::vector<std::int64_t>& out) {
        out.resize(static_cast<std::size_t>(list_length(property)));
        for (std::int64_t& one : out) one = whole(*property.type, property.name.c_str());
    }

    void skip(const Property& property) {
        const std::int64_t values = property.count != nullptr ? list_length(property) : 1;
        if (!text_) {
            scanner_.take(static_cast<std::size_t>(values) * property.type->bytes, property.name.c_str());
            return;
        }
        for (std::int64_t i = 0; i < values; ++i) scanner_.word(property.name.c_str());
    }

  private:
    std::int64_t whole(const Type& type, const char* what) {
        if (text_) return scanner_.integer(what);
        return static_cast<std::int64_t>(number_from(scanner_.take(type.bytes, what), type, swap_));
    }

    Scanner& scanner_;
    bool text_;
    bool swap_ = false;
};

std::size_t find(const Scanner& scanner, const Element& element, std::string_view name) {
    for (std::size_t i = 0; i < element.properties.size(); ++i) {
        const Property& property = element.properties[i];
        if (property.name == name && property.count == nullptr) return i;
    }
    scanner.refuse("vertices have no " + std::string(name));
}

void read_vertices(const Scanner& scanner, const Element& element, Body& body, MeshBuilder& builder) {
    const std::array<std::size_t, 3> wanted = {find(scanner, element, "x"), find(scanner, element, "y"),
                                               find(scanner, element, "z")};
    builder.mesh().vertices.reserve(static_cast<std::size_t>(element.count));
    for (std::int64_t i = 0; i < element.count; ++i) {
        std::array<double, 3> at{};
        for (std::size_t p = 0; p < element.properties.size(); ++p) {
            std::size_t axis = 0;
            while (axis < 3 && wanted[axis] != p) ++axis;
            if (axis < 3) {
                at[axis] = body.scalar(element.properties[p]);
            } else {
                body.skip(element.properties[p]);
            }
        }
        builder.vertex(at[0], at[1], at[2]);
    }
}

void read_faces(const Scanner& scanner, const Element& element, Body& body, MeshBuilder& builder) {
    const Property* corners = nullptr;
    for (const Property& property : element.properties) {
        const bool named = property.name == "vertex_indices" || property.name == "vertex_index";
        if (named && property.count != nullptr) corners = &property;
    }
    if (corners == nullptr) scanner.refuse("faces have no list named vertex_indices or vertex_index");
    if (!corners->type->whole) scanner.refuse("faces name their vertices by numbers that are not whole");
    builder.mesh().triangles.reserve(static_cast<std::size_t>(element.count));
    std::vector<std::int64_t> face;
    for (std::int64_t i = 0; i < element.count; ++i) {
        for (const Property& property : element.properties) {
            if (&property != corners) {
                body.skip(property);
                continue;
            }
            body.list(property, face);
            builder.face(face);
        }
    }
}

void skip(const Element& element, Body& body) {
    if (element.properties.empty()) return;
    for (std::int64_t i = 0; i < element.count; ++i) {
        for (const Property& property : element.properties) body.skip(property);
    }
}

void check_end(Scanner& scanner) {
    const std::size_t at = scanner.offset();
    const std::size_t extra = scanner.left();
    if (!scanner.next_word()) return;
    scanner.refuse_offset(at, std::to_string(extra) + " bytes follow the last element",
                         "the counts in the header do not fit the file");
}

}  // namespace

Mesh read_ply(Scanner& scanner, double unit_metres) {
    const Header header = header_of(scanner);
    MeshBuilder builder(scanner);
    if (header.encoding != PlyEncoding::text) scanner.begin_binary();
    Body body(scanner, header.encoding);
    bool vertices = false, faces = false;
    for (const Element& element : header.elements) {
        const std::string what = "elements '" + shown(element.name) + "'";
        const std::size_t least = least_bytes(element, header.encoding);
        if (element.count < 0 || least > 0) scanner.check_count(element.count, what.c_str(), least);
        bool& seen = element.name == "vertex" ? vertices : faces;
        if (element.name != "vertex" && element.name != "face") {
            skip(element, body);
            continue;
        }
        if (seen) scanner.refuse("two elements are named '" + element.name + "'");
        seen = true;
        if (&seen == &vertices) {
            read_vertices(scanner, element, body, builder);
        } else {
            read_faces(scanner, element, body, builder);
        }
    }
    if (!vertices) scanner.refuse("the header has no element 'vertex'");
    if (!faces) scanner.refuse("the header has no element 'face'");
    check_end(scanner);
    return builder.finish(unit_metres);
}

}  // namespace penstock::hmatrix
