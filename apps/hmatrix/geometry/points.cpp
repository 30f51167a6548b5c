// See points.hpp. Sorting finds equal items. It needs no hash, so no input is slow, and the results do not depend on a
// hash function.
#include "hmatrix/geometry/points.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <tuple>

namespace penstock::hmatrix {
namespace {

bool finite(const Point& p) { return std::isfinite(p.x) && std::isfinite(p.y) && std::isfinite(p.z); }

auto key(const Point& p) { return std::tuple(p.x, p.y, p.z); }

Fault fault_of(const Mesh& mesh, const Triangle& t) {
    for (const std::int32_t corner : t) {
        if (corner < 0 || static_cast<std::size_t>(corner) >= mesh.vertices.size()) return Fault::bad_index;
    }
    const Point &a = mesh.vertices[t[0]], &b = mesh.vertices[t[1]], &c = mesh.vertices[t[2]];
    if (!in_range(a) || !in_range(b) || !in_range(c)) return Fault::not_finite;
    return has_area(a, b, c) ? Fault::none : Fault::without_area;
}

}  // namespace

std::vector<std::int32_t> first_of_place(const std::vector<Point>& vertices) {
    std::vector<std::int32_t> first(vertices.size());
    std::iota(first.begin(), first.end(), 0);
    std::vector<std::int32_t> order;
    for (const std::int32_t v : first) {
        if (finite(vertices[v])) order.push_back(v);
    }
    std::sort(order.begin(), order.end(), [&](std::int32_t i, std::int32_t j) {
        return std::tuple(key(vertices[i]), i) < std::tuple(key(vertices[j]), j);
    });
    for (std::size_t i = 1; i < order.size(); ++i) {
        if (key(vertices[order[i]]) == key(vertices[order[i - 1]])) first[order[i]] = first[order[i - 1]];
    }
    return first;
}

Judged judge(const Mesh& mesh, const std::vector<std::int32_t>& place) {
    struct Sorted {
        Triangle points;
        std::int64_t number;
    };
    Judged judged;
    std::vector<Sorted> sound;
    for (std::size_t t = 0; t < mesh.triangles.size(); ++t) {
        judged.original.push_back(static_cast<std::int64_t>(t));
        judged.faults.push_back(fault_of(mesh, mesh.triangles[t]));
        if (judged.faults.back() != Fault::none) continue;
        Sorted one{mesh.triangles[t], static_cast<std::int64_t>(t)};
        for (std::int32_t& corner : one.points) corner = place[static_cast<std::size_t>(corner)];
        std::sort(one.points.begin(), one.points.end());
        sound.push_back(one);
    }
    std::sort(sound.begin(), sound.end(), [](const Sorted& a, const Sorted& b) {
        return std::tie(a.points, a.number) < std::tie(b.points, b.number);
    });
    for (std::size_t i = 1; i < sound.size(); ++i) {
        if (sound[i].points != sound[i - 1].points) continue;
        const auto t = static_cast<std::size_t>(sound[i].number);
        judged.faults[t] = Fault::duplicate;
        judged.original[t] = judged.original[static_cast<std::size_t>(sound[i - 1].number)];
    }
    return judged;
}

}  // namespace penstock::hmatrix
