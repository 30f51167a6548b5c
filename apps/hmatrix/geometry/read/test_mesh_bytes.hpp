// One tetrahedron in the bytes of every format. Tests read these bytes, and damage them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

namespace penstock::hmatrix::test {

inline constexpr const char* kPlyText =
    "ply\nformat ascii 1.0\nelement vertex 4\nproperty float x\nproperty float y\nproperty float z\nelement face 4\n"
    "property list uchar int vertex_indices\nend_header\n0 0 0\n1 0 0\n0 1.5 0\n0 0 -2.25\n3 0 2 1\n3 0 1 3\n3 1 2 3\n"
    "3 0 3 2\n";
inline constexpr const char* kObj =
    "v 0 0 0\nv 1 0 0\nv 0 1.5 0\nv 0 0 -2.25\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n";
inline constexpr const char* kOff =
    "OFF\n4 4 6\n0 0 0\n1 0 0\n0 1.5 0\n0 0 -2.25\n3 0 2 1\n3 0 1 3\n3 1 2 3\n3 0 3 2\n";
inline constexpr const char* kPbf =
    "4\n0.0D+00 0 0\n1 0 0\n0 1.5 0\n0 0 -2.25d0\n4\n3\n1\n2\n0 2 1\n0 1 3\n1 2 3\n0 3 2\n7\n7\n7\n7\n"
    "1 9\n-1 9\n0.5 9\n1E3 9\n";

inline constexpr double kPoints[4][3] = {{0, 0, 0}, {1, 0, 0}, {0, 1.5, 0}, {0, 0, -2.25}};
inline constexpr int kFaces[4][3] = {{0, 2, 1}, {0, 1, 3}, {1, 2, 3}, {0, 3, 2}};

// Collects bytes in big-endian or little-endian order.
class Bytes {
  public:
    explicit Bytes(bool big) : big_(big) {}

    template <class Number>
    Bytes& put(Number value) {
        char raw[sizeof value];
        std::memcpy(raw, &value, sizeof value);
        if (big_) std::reverse(raw, raw + sizeof value);
        all_.append(raw, sizeof value);
        return *this;
    }
    Bytes& put_as(const std::string& type, double value) {
        if (type == "char" || type == "uchar" || type == "uint8") return put(static_cast<std::uint8_t>(value));
        if (type == "short" || type == "ushort") return put(static_cast<std::uint16_t>(value));
        if (type == "int" || type == "uint") return put(static_cast<std::uint32_t>(value));
        return type == "double" ? put(value) : put(static_cast<float>(value));
    }
    Bytes& text(const std::string& text) {
        all_ += text;
        return *this;
    }
    const std::string& all() const { return all_; }

  private:
    bool big_;
    std::string all_;
};

struct PlyTypes {
    bool big = false;
    std::string real = "float", length = "uchar", index = "int";
};

inline std::string ply_binary(const PlyTypes& types = {}) {
    Bytes bytes(types.big);
    bytes.text("ply\nformat binary_" + std::string(types.big ? "big" : "little") + "_endian 1.0\nelement vertex 4\n");
    for (const char* axis : {"x", "y", "z"}) bytes.text("property " + types.real + " " + axis + "\n");
    bytes.text("element face 4\nproperty list " + types.length + " " + types.index + " vertex_indices\nend_header\n");
    for (const auto& point : kPoints) {
        for (const double one : point) bytes.put_as(types.real, one);
    }
    for (const auto& face : kFaces) {
        bytes.put_as(types.length, 3);
        for (const int corner : face) bytes.put_as(types.index, corner);
    }
    return bytes.all();
}

inline std::string stl_text() {
    std::string text = "solid a name of several words\n";
    for (const auto& face : kFaces) {
        text += " facet normal 0 0 nan\n  outer loop\n";
        for (const int corner : face) {
            text += "   vertex";
            for (const double one : kPoints[corner]) text += " " + std::to_string(one);
            text += "\n";
        }
        text += "  endloop\n endfacet\n";
    }
    return text + "endsolid a name of several words\n";
}

inline std::string stl_binary() {
    Bytes bytes(false);
    bytes.text(std::string(80, ' ')).put<std::uint32_t>(4);
    for (const auto& face : kFaces) {
        for (int k = 0; k < 3; ++k) bytes.put(0.f);
        for (const int corner : face) {
            for (const double one : kPoints[corner]) bytes.put(static_cast<float>(one));
        }
        bytes.put<std::uint16_t>(0);
    }
    return bytes.all();
}

}  // namespace penstock::hmatrix::test
