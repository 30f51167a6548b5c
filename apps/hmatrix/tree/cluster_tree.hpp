// The cluster tree. It halves sets of points again and again across the longest side of their bounding box, as HACApK
// does.
//
// A cluster is a range of positions in the order that the tree gives the points. Its two sons divide that range. A box
// bounds the points only, not the triangles around them. The split is geometric: it cuts at the middle of the box, so
// the sons can differ much in size, but neither is empty.
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
    std::array<std::int64_t, 2> sons{-1, -1};  // indices into ClusterTree::clusters; -1: this cluster is a leaf
    Box box{};
    double diameter = 0;  // length of the box's diagonal

    std::int64_t size() const noexcept { return end - begin; }
    bool leaf() const noexcept { return sons[0] < 0; }
};

struct ClusterTree {
    std::vector<Cluster> clusters;    // the root comes first
    std::vector<std::int64_t> order;  // position -> point
};

double distance(const Box& one, const Box& other) noexcept;  // Euclidean; 0 when they touch or overlap

// Halves each cluster that has more than `leaf_size` points. Points that coincide stay in one cluster, whatever their
// number. Throws Error{invalid_argument} for no points, a leaf size below 1, and coordinates that are not finite.
ClusterTree build_cluster_tree(std::span<const Point> points, std::int64_t leaf_size);

}  // namespace penstock::hmatrix
