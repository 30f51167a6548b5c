// The cluster tree: points halved again and again by the longest side of their box, as HACApK does it.
//
// A cluster is a run of the order the tree puts points in; its sons are the two halves of that run. Boxes hold the
// points themselves, not the triangles around them. The split is geometric, not balanced: at the middle of the box, so
// sons may be of very different sizes, but none is empty.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "hmatrix/geometry/mesh.hpp"

namespace penstock::hmatrix {

struct Box {
    Point low;
    Point high;
};

struct Cluster {
    std::int64_t begin = 0;  // positions in ClusterTree::order
    std::int64_t end = 0;
    std::array<std::int64_t, 2> sons{-1, -1};  // of ClusterTree::clusters; -1: a leaf
    Box box{};
    double diameter = 0;  // of the box: its diagonal

    std::int64_t size() const noexcept { return end - begin; }
    bool leaf() const noexcept { return sons[0] < 0; }
};

struct ClusterTree {
    std::vector<Cluster> clusters;    // the root first
    std::vector<std::int64_t> order;  // position -> point
};

double distance(const Box& one, const Box& other) noexcept;  // 0 when they touch

// Halves clusters of more than `leaf_size` points. Points that coincide stay together, whatever their number. Throws
// Error{invalid_argument} for no points, a leaf size below 1, and coordinates that are not finite.
ClusterTree build_cluster_tree(std::span<const Point> points, std::int64_t leaf_size);

}  // namespace penstock::hmatrix
