// STL: triangles given by their corners, as text or binary. Corners that are equal to the last bit become one vertex.
#include <array>
#include <bit>
#include <cstring>
#include <unordered_map>

#include "hmatrix/geometry/read/readers.hpp"

namespace penstock::hmatrix {
namespace {

constexpr std::size_t kHeader = 84, kRecord = 50;

using Place = std::array<std::uint64_t, 3>;  // the bits of three coordinates

struct PlaceHash {
    std::size_t operator()(const Place& place) const noexcept {
        std::uint64_t mixed = 0;
        for (const std::uint64_t word : place) mixed = (mixed ^ word) * 0x9e3779b97f4a7c15u ^ (mixed >> 29);
        return mixed ^ (mixed >> 32);
    }
};

class Corners {
  public:
    explicit Corners(MeshBuilder& builder) : builder_(builder) {}

    std::int64_t number(const std::array<double, 3>& at) {
        Place place{};
        for (std::size_t k = 0; k < 3; ++k) place[k] = std::bit_cast<std::uint64_t>(at[k] + 0.0);  // -0 becomes 0
        const auto [known, made] = numbers_.try_emplace(place, static_cast<std::int64_t>(numbers_.size()));
        if (made) builder_.vertex(at[0], at[1], at[2]);
        return known->second;
    }

  private:
    MeshBuilder& builder_;
    std::unordered_map<Place, std::int64_t, PlaceHash> numbers_;
};

void expect(Scanner& scanner, std::string_view wanted) {
    const std::string_view found = scanner.word(std::string(wanted).c_str());
    if (found != wanted) scanner.refuse_line("'" + shown(found) + "' where '" + std::string(wanted) + "' should stand");
}

// Reads a facet after the word "facet". Ignores the normal, because the corners determine it.
void take_facet(Scanner& scanner, MeshBuilder& builder, Corners& corners) {
    expect(scanner, "normal");
    for (int k = 0; k < 3; ++k) scanner.word("a normal");
    expect(scanner, "outer");
    expect(scanner, "loop");
    std::array<std::int64_t, 3> face{};
    for (std::int64_t& corner : face) {
        expect(scanner, "vertex");
        std::array<double, 3> at{};
        for (double& one : at) one = scanner.number("a coordinate");
        corner = corners.number(at);
    }
    expect(scanner, "endloop");
    expect(scanner, "endfacet");
    builder.face(face);
}

float number_at(const char* bytes) {
    std::array<unsigned char, 4> raw;
    std::memcpy(raw.data(), bytes, 4);
    const std::uint32_t word = raw[0] | raw[1] << 8 | raw[2] << 16 | std::uint32_t{raw[3]} << 24;
    return std::bit_cast<float>(word);
}

std::uint32_t count_at(const char* bytes) { return std::bit_cast<std::uint32_t>(number_at(bytes)); }

std::uint32_t swapped(std::uint32_t v) { return v >> 24 | (v >> 8 & 0xff00) | (v << 8 & 0xff0000) | v << 24; }

void check_size(const Scanner& scanner, std::uint32_t triangles) {
    const std::uint64_t bytes = scanner.bytes().size();
    if (bytes == kHeader + kRecord * triangles) return;
    const bool other_order = bytes == kHeader + kRecord * std::uint64_t{swapped(triangles)};
    scanner.refuse_offset(80,
                         "binary STL of " + std::to_string(triangles) + " triangles takes " +
                             std::to_string(kHeader + kRecord * triangles) + " bytes, and the file has " +
                             std::to_string(bytes),
                         other_order ? "its bytes lie in the wrong order: STL is little-endian"
                                     : "the file is cut off, is not STL, or its count is wrong");
}

}  // namespace

Mesh read_stl_text(Scanner& scanner, double unit_metres) {
    MeshBuilder builder(scanner);
    Corners corners(builder);
    std::string_view line;
    while (auto word = scanner.next_word()) {
        if (*word != "solid") scanner.refuse_line("'" + shown(*word) + "' where 'solid' should stand");
        scanner.next_line(line);  // the name of the solid
        for (;;) {
            const std::string_view next = scanner.word("'endsolid'");
            if (next == "endsolid") break;
            if (next != "facet") scanner.refuse_line("'" + shown(next) + "' where 'facet' or 'endsolid' should stand");
            take_facet(scanner, builder, corners);
        }
        scanner.next_line(line);
    }
    return builder.finish(unit_metres);
}

Mesh read_stl_binary(Scanner& scanner, double unit_metres) {
    if (scanner.left() < kHeader) scanner.refuse("binary STL has a head of 84 bytes, and the file has fewer");
    const std::uint32_t triangles = count_at(scanner.take(kHeader, "the head").data() + 80);
    check_size(scanner, triangles);
    scanner.begin_binary();
    MeshBuilder builder(scanner);
    Corners corners(builder);
    builder.mesh().triangles.reserve(triangles);
    for (std::uint32_t t = 0; t < triangles; ++t) {
        const char* record = scanner.take(kRecord, "a triangle").data();
        std::array<std::int64_t, 3> face{};
        for (std::size_t c = 0; c < 3; ++c) {
            const char* at = record + 12 * (c + 1);
            face[c] = corners.number({number_at(at), number_at(at + 4), number_at(at + 8)});
        }
        builder.face(face);
    }
    return builder.finish(unit_metres);
}

}  // namespace penstock::hmatrix
