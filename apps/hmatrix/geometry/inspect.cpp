// See clean.hpp. This file makes the report and its text.
#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "hmatrix/geometry/clean.hpp"
#include "hmatrix/geometry/points.hpp"

namespace penstock::hmatrix {
namespace {

constexpr std::size_t kFirst = 5;

void note(std::int64_t& count, std::vector<std::int64_t>& first, std::size_t triangle) {
    ++count;
    if (first.size() < kFirst) first.push_back(static_cast<std::int64_t>(triangle));
}

// The sound triangles without duplicates; corners are the first vertex of each point.
struct Surface {
    std::vector<Triangle> triangles;
    std::vector<std::int64_t> numbers;
};

Surface count_faults(const Mesh& mesh, const std::vector<std::int32_t>& place, MeshReport& report) {
    const Judged judged = judge(mesh, place);
    Surface surface;
    for (std::size_t t = 0; t < mesh.triangles.size(); ++t) {
        switch (judged.faults[t]) {
            case Fault::duplicate: note(report.duplicate_triangles, report.first_duplicates, t); break;
            case Fault::bad_index: note(report.bad_indices, report.first_bad_indices, t); break;
            case Fault::not_finite: note(report.not_finite, report.first_not_finite, t); break;
            case Fault::without_area: note(report.without_area, report.first_without_area, t); break;
            case Fault::none:
                surface.numbers.push_back(static_cast<std::int64_t>(t));
                surface.triangles.push_back(mesh.triangles[t]);
                for (std::int32_t& corner : surface.triangles.back()) corner = place[static_cast<std::size_t>(corner)];
        }
    }
    return surface;
}

void count_vertices(const Mesh& mesh, const std::vector<std::int32_t>& place, MeshReport& report) {
    std::vector<char> used(mesh.vertices.size());
    for (const Triangle& t : mesh.triangles) {
        for (const std::int32_t corner : t) {
            const auto v = static_cast<std::size_t>(corner);  // a negative index becomes a large one, past the end
            if (v < used.size()) used[v] = 1;
        }
    }
    report.unused_vertices = std::count(used.begin(), used.end(), 0);
    for (std::size_t v = 0; v < place.size(); ++v) {
        report.coincident_vertices += place[v] != static_cast<std::int32_t>(v);
    }
}

void count_edges(const Surface& surface, MeshReport& report) {
    std::vector<std::pair<std::int32_t, std::int32_t>> edges;
    edges.reserve(3 * surface.triangles.size());
    for (const Triangle& t : surface.triangles) {
        for (std::size_t e = 0; e < 3; ++e) edges.push_back(std::minmax(t[e], t[(e + 1) % 3]));
    }
    std::sort(edges.begin(), edges.end());
    for (std::size_t i = 0; i < edges.size();) {
        std::size_t end = i;
        while (end < edges.size() && edges[end] == edges[i]) ++end;
        report.boundary_edges += end - i == 1;
        report.non_manifold_edges += end - i > 2;
        i = end;
    }
    report.closed = report.boundary_edges == 0 && !surface.triangles.empty();
}

void count_components(const Surface& surface, std::size_t vertices, MeshReport& report) {
    std::vector<std::int32_t> parent(vertices);
    std::iota(parent.begin(), parent.end(), 0);
    const auto root = [&](std::int32_t v) {
        while (parent[v] != v) v = parent[v] = parent[parent[v]];
        return v;
    };
    std::vector<char> used(vertices);
    for (const Triangle& t : surface.triangles) {
        for (const std::int32_t corner : t) {
            used[static_cast<std::size_t>(corner)] = 1;
            parent[root(corner)] = root(t[0]);
        }
    }
    for (std::size_t v = 0; v < vertices; ++v) {
        report.components += used[v] != 0 && parent[v] == static_cast<std::int32_t>(v);
    }
}

void measure(const Mesh& mesh, const Surface& surface, MeshReport& report) {
    Mesh sound;
    sound.vertices = mesh.vertices;
    sound.triangles = surface.triangles;
    const std::vector<std::int32_t> first = first_of_place(centroids(sound));
    for (std::size_t i = 0; i < first.size(); ++i) {
        if (first[i] == static_cast<std::int32_t>(i)) continue;
        note(report.coincident_centroids, report.first_coincident_centroids,
             static_cast<std::size_t>(surface.numbers[i]));
    }
    if (surface.triangles.empty()) return;
    report.low = report.high = mesh.vertices[static_cast<std::size_t>(surface.triangles[0][0])];
    for (const Triangle& t : surface.triangles) {
        for (const std::int32_t corner : t) {
            const Point& p = mesh.vertices[static_cast<std::size_t>(corner)];
            report.low = {std::min(report.low.x, p.x), std::min(report.low.y, p.y), std::min(report.low.z, p.z)};
            report.high = {std::max(report.high.x, p.x), std::max(report.high.y, p.y), std::max(report.high.z, p.z)};
        }
    }
}

std::string counted(std::int64_t count, const std::string& one, const std::string& many) {
    std::string digits = std::to_string(count);
    for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
        digits.insert(static_cast<std::size_t>(at), ",");
    }
    return digits + " " + (count == 1 ? one : many);
}

std::string numbers(const std::vector<std::int64_t>& first, std::int64_t count) {
    if (first.empty()) return {};
    std::string text;
    for (const std::int64_t one : first) text += (text.empty() ? " (" : ", ") + std::to_string(one);
    return text + (count > static_cast<std::int64_t>(first.size()) ? ", ...)" : ")");
}

}  // namespace

bool MeshReport::sound() const noexcept {
    return triangles > 0 && duplicate_triangles + bad_indices + not_finite + without_area + coincident_centroids == 0;
}

MeshReport inspect(const Mesh& mesh) {
    MeshReport report;
    report.vertices = static_cast<std::int64_t>(mesh.vertices.size());
    report.triangles = mesh.unknowns();
    const std::vector<std::int32_t> place = first_of_place(mesh.vertices);
    count_vertices(mesh, place, report);
    const Surface surface = count_faults(mesh, place, report);
    count_edges(surface, report);
    count_components(surface, mesh.vertices.size(), report);
    measure(mesh, surface, report);
    return report;
}

std::string describe(const MeshReport& r) {
    std::string text = counted(r.triangles, "triangle", "triangles") + ", " +
                       counted(r.vertices, "vertex", "vertices") + "\n";
    const auto say = [&](std::int64_t count, const char* one, const char* many,
                         const std::vector<std::int64_t>& first) {
        if (count > 0) text += counted(count, one, many) + numbers(first, count) + "\n";
    };
    say(r.duplicate_triangles, "duplicate triangle", "duplicate triangles", r.first_duplicates);
    say(r.bad_indices, "triangle names a vertex that is not there", "triangles name vertices that are not there",
        r.first_bad_indices);
    say(r.not_finite, "triangle has a corner that is not finite or beyond 1e60 m",
        "triangles have corners that are not finite or beyond 1e60 m", r.first_not_finite);
    say(r.without_area, "triangle has no area", "triangles have no area", r.first_without_area);
    say(r.coincident_centroids, "triangle has the centroid of another", "triangles have the centroid of another",
        r.first_coincident_centroids);
    say(r.coincident_vertices, "vertex lies where another does", "vertices lie where others do", {});
    say(r.unused_vertices, "unused vertex", "unused vertices", {});
    say(r.non_manifold_edges, "edge of three or more triangles", "edges of three or more triangles", {});
    say(r.components, "component", "components", {});
    if (r.closed) return text + "closed\n";
    return text + "open: " + counted(r.boundary_edges, "boundary edge", "boundary edges") + "\n";
}

}  // namespace penstock::hmatrix
