// Builds the cluster tree from a work list instead of by recursion, because the depth depends on the user's points.
#include "hmatrix/tree/cluster_tree.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

constexpr double Point::*kAxes[] = {&Point::x, &Point::y, &Point::z};

Box box_of(std::span<const Point> points, std::span<const std::int64_t> members) {
    Box box{points[members[0]], points[members[0]]};
    for (const std::int64_t member : members) {
        for (const auto axis : kAxes) {
            box.low.*axis = std::min(box.low.*axis, points[member].*axis);
            box.high.*axis = std::max(box.high.*axis, points[member].*axis);
        }
    }
    return box;
}

double Point::*longest_side(const Box& box) {
    double Point::*longest = kAxes[0];
    for (const auto axis : kAxes) {
        if (box.high.*axis - box.low.*axis > box.high.*longest - box.low.*longest) longest = axis;
    }
    return longest;
}

// Moves the members whose coordinate is at most the middle of the box to the front, and returns their number. The swaps
// run from both ends as in HACApK, because the order within a cluster decides which row a cross approximation begins
// with.
std::int64_t split(std::span<const Point> points, std::span<std::int64_t> members, const Box& box) {
    const auto axis = longest_side(box);
    const double middle = (box.low.*axis + box.high.*axis) / 2;
    std::int64_t left = 0;
    auto right = static_cast<std::int64_t>(members.size()) - 1;
    while (true) {
        while (left <= right && points[members[left]].*axis <= middle) ++left;
        while (left <= right && points[members[right]].*axis > middle) --right;
        if (left > right) return left;
        std::swap(members[left], members[right]);
    }
}

void check(std::span<const Point> points, std::int64_t leaf_size) {
    if (points.empty() || leaf_size < 1) {
        throw Error(ErrorCode::invalid_argument, "cluster points",
                    points.empty() ? "there are no points" : "leaf size " + std::to_string(leaf_size) + " is below 1");
    }
    for (std::size_t i = 0; i < points.size(); ++i) {
        if (std::isfinite(points[i].x) && std::isfinite(points[i].y) && std::isfinite(points[i].z)) continue;
        throw Error(ErrorCode::invalid_argument, "cluster points",
                    "point " + std::to_string(i) + " has a coordinate that is not a finite number");
    }
}

}  // namespace

double distance(const Box& one, const Box& other) noexcept {
    const auto gap = [&](double Point::*axis) {
        return std::max({0.0, one.low.*axis - other.high.*axis, other.low.*axis - one.high.*axis});
    };
    return std::hypot(gap(&Point::x), gap(&Point::y), gap(&Point::z));
}

ClusterTree build_cluster_tree(std::span<const Point> points, std::int64_t leaf_size) {
    check(points, leaf_size);
    ClusterTree tree;
    tree.order.resize(points.size());
    std::iota(tree.order.begin(), tree.order.end(), std::int64_t{0});
    tree.clusters.push_back({0, static_cast<std::int64_t>(points.size())});
    for (std::size_t at = 0; at < tree.clusters.size(); ++at) {
        Cluster cluster = tree.clusters[at];
        const auto members = std::span(tree.order).subspan(cluster.begin, cluster.size());
        cluster.box = box_of(points, members);
        const Point &low = cluster.box.low, &high = cluster.box.high;
        cluster.diameter = std::hypot(high.x - low.x, high.y - low.y, high.z - low.z);
        if (cluster.size() > leaf_size && cluster.diameter > 0) {
            const std::int64_t middle = cluster.begin + split(points, members, cluster.box);
            if (middle > cluster.begin && middle < cluster.end) {
                const auto first = static_cast<std::int64_t>(tree.clusters.size());
                cluster.sons = {first, first + 1};
                tree.clusters.push_back({cluster.begin, middle});
                tree.clusters.push_back({middle, cluster.end});
            }
        }
        tree.clusters[at] = cluster;
    }
    return tree;
}

}  // namespace penstock::hmatrix
