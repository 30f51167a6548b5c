// Compares the cluster tree and the block partition with their definitions, entry by entry where the matrix is small.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <tuple>

#include "hmatrix/geometry/shapes.hpp"
#include "hmatrix/tree/blocks.hpp"
#include "hmatrix/tree/cluster_tree.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

std::vector<Point> random_points(std::int64_t count, unsigned seed) {
    std::mt19937_64 random(seed);
    const auto number = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
    std::vector<Point> points(count);
    for (Point& point : points) point = {number(), 3 * number(), 0.1 * number()};
    return points;
}

// Each point halves the distance to the origin, which gives sons of very different sizes and a deep tree.
std::vector<Point> crowding_points(std::int64_t count) {
    std::vector<Point> points(count);
    for (std::int64_t i = 0; i < count; ++i) points[i].x = std::ldexp(1.0, static_cast<int>(-i));
    return points;
}

struct Case {
    const char* name;
    std::vector<Point> points;
    std::int64_t leaf_size;
};

std::vector<Case> cases() {
    std::vector<Point> pairs = random_points(100, 1);
    pairs.insert(pairs.end(), pairs.begin(), pairs.begin() + 100);
    std::vector<Point> heap = random_points(50, 2);
    heap.insert(heap.end(), 60, Point{0.5, 0.5, 0.05});
    return {{"one point", {{1, 2, 3}}, 15},
            {"two points", {{0, 0, 0}, {1, 0, 0}}, 1},
            {"fewer than a leaf", random_points(15, 3), 15},
            {"one more than a leaf", random_points(16, 4), 15},
            {"box", random_points(300, 5), 15},
            {"box to the last point", random_points(120, 6), 1},
            {"sphere", centroids(sphere(320)), 8},
            {"cube", centroids(cube(192)), 4},
            {"two spheres", centroids(mirrored_spheres(160)), 6},
            {"line", crowding_points(200), 3},
            {"pairs that coincide", pairs, 5},
            {"many that coincide", heap, 7},
            {"all coincide", std::vector<Point>(40, Point{1, 1, 1}), 15}};
}

Box box_of(const Case& given, const ClusterTree& tree, std::int64_t begin, std::int64_t end) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    Box box{{kInfinity, kInfinity, kInfinity}, {-kInfinity, -kInfinity, -kInfinity}};
    for (std::int64_t i = begin; i < end; ++i) {
        const Point& point = given.points[tree.order[i]];
        box.low = {std::min(box.low.x, point.x), std::min(box.low.y, point.y), std::min(box.low.z, point.z)};
        box.high = {std::max(box.high.x, point.x), std::max(box.high.y, point.y), std::max(box.high.z, point.z)};
    }
    return box;
}

double diameter_of(const Box& box) {
    return std::sqrt(std::pow(box.high.x - box.low.x, 2) + std::pow(box.high.y - box.low.y, 2) +
                     std::pow(box.high.z - box.low.z, 2));
}

TEST(ClusterTree, sons_halve_their_cluster_at_the_middle_of_its_longest_side) {
    for (const Case& given : cases()) {
        const ClusterTree tree = build_cluster_tree(given.points, given.leaf_size);
        const auto n = static_cast<std::int64_t>(given.points.size());
        ASSERT_EQ(std::set<std::int64_t>(tree.order.begin(), tree.order.end()).size(), given.points.size());
        ASSERT_TRUE(tree.clusters[0].begin == 0 && tree.clusters[0].end == n) << given.name;
        for (const Cluster& cluster : tree.clusters) {
            const Box box = box_of(given, tree, cluster.begin, cluster.end);
            EXPECT_TRUE(box.low.x == cluster.box.low.x && box.high.z == cluster.box.high.z &&
                        box.high.y == cluster.box.high.y) << given.name;
            EXPECT_NEAR(cluster.diameter, diameter_of(box), 1e-15) << given.name;
            if (cluster.leaf()) {
                EXPECT_TRUE(cluster.size() <= given.leaf_size || cluster.diameter == 0) << given.name;
                continue;
            }
            EXPECT_GT(cluster.size(), given.leaf_size);
            const Cluster &left = tree.clusters[cluster.sons[0]], &right = tree.clusters[cluster.sons[1]];
            EXPECT_TRUE(left.begin == cluster.begin && left.end == right.begin && right.end == cluster.end);
            EXPECT_TRUE(left.size() > 0 && right.size() > 0) << given.name;
            const double sides[] = {box.high.x - box.low.x, box.high.y - box.low.y, box.high.z - box.low.z};
            const double gaps[] = {right.box.low.x - left.box.high.x, right.box.low.y - left.box.high.y,
                                   right.box.low.z - left.box.high.z};
            const auto longest = std::max_element(sides, sides + 3) - sides;
            EXPECT_GT(gaps[longest], 0) << given.name << ": the cut is across the longest side";
        }
    }
}

TEST(Partition, covers_every_entry_once_in_sorted_leaves) {
    for (const Case& given : cases()) {
        for (const double eta : {0.5, 2.0, 100.0}) {
            const ClusterTree tree = build_cluster_tree(given.points, given.leaf_size);
            const std::vector<Leaf> leaves = partition(tree, {eta, given.leaf_size});
            const auto n = static_cast<std::int64_t>(given.points.size());
            std::vector<int> covered(n * n);
            for (const Leaf& leaf : leaves) {
                for (std::int64_t i = 0; i < leaf.rows; ++i) {
                    for (std::int64_t j = 0; j < leaf.columns; ++j) {
                        ++covered[(leaf.row + i) * n + leaf.column + j];
                    }
                }
            }
            EXPECT_EQ(std::count(covered.begin(), covered.end(), 1), n * n) << given.name << ", eta " << eta;
            EXPECT_TRUE(std::is_sorted(leaves.begin(), leaves.end(), [](const Leaf& a, const Leaf& b) {
                return std::tie(a.row, a.column) < std::tie(b.row, b.column);
            })) << given.name;
        }
    }
}

TEST(Partition, low_rank_leaves_are_admissible_and_longer_than_a_leaf_cluster) {
    for (const Case& given : cases()) {
        for (const double eta : {0.5, 2.0}) {
            const ClusterTree tree = build_cluster_tree(given.points, given.leaf_size);
            for (const Leaf& leaf : partition(tree, {eta, given.leaf_size})) {
                const Box rows = box_of(given, tree, leaf.row, leaf.row + leaf.rows);
                const Box columns = box_of(given, tree, leaf.column, leaf.column + leaf.columns);
                const double gap = distance(rows, columns);
                const double diameter = std::min(diameter_of(rows), diameter_of(columns));
                const bool far = gap > 0 && diameter <= eta * gap * (1 + 1e-12);
                const std::int64_t side = std::min(leaf.rows, leaf.columns);
                if (leaf.low_rank) {
                    EXPECT_TRUE(far && side > given.leaf_size) << given.name;
                    continue;
                }
                // HACApK stops dividing where a side is at most leaf_size + 1 long or has no sons.
                const bool together = rows.low.x == rows.high.x && rows.low.y == rows.high.y;
                EXPECT_TRUE(side <= given.leaf_size + 1 || together || !far) << given.name;
                EXPECT_FALSE(far && side > given.leaf_size) << given.name << ": it could have been of low rank";
            }
        }
    }
}

TEST(Partition, a_sphere_is_mostly_low_rank_and_its_leaves_are_as_they_were) {
    const std::vector<Point> points = centroids(sphere(1280));
    const ClusterTree tree = build_cluster_tree(points, 15);
    const std::vector<Leaf> leaves = partition(tree, {});
    std::int64_t far = 0;
    for (const Leaf& leaf : leaves) far += leaf.low_rank ? leaf.entries() : 0;
    EXPECT_GT(far, 1280 * 1280 / 2);
    const auto in_units = [&](int power) {  // the partition must not depend on the unit of length
        std::vector<Point> scaled = points;
        for (Point& point : scaled) {
            point = {std::ldexp(point.x, power), std::ldexp(point.y, power), std::ldexp(point.z, power)};
        }
        return partition(build_cluster_tree(scaled, 15), {});
    };
    const std::vector<Leaf> small = in_units(-600), large = in_units(600);
    ASSERT_EQ(small.size(), leaves.size());
    ASSERT_EQ(large.size(), leaves.size());
    for (std::size_t i = 0; i < leaves.size(); ++i) {
        EXPECT_TRUE(small[i].row == leaves[i].row && small[i].low_rank == leaves[i].low_rank);
        EXPECT_TRUE(large[i].column == leaves[i].column && large[i].low_rank == leaves[i].low_rank);
    }
}

TEST(Distance, is_zero_for_boxes_that_touch_and_euclidean_between_corners) {
    const Box box{{0, 0, 0}, {1, 1, 1}};
    EXPECT_EQ(distance(box, box), 0);
    EXPECT_EQ(distance(box, {{1, 0, 0}, {2, 1, 1}}), 0);
    EXPECT_EQ(distance(box, {{0.5, 0.5, 3}, {2, 2, 4}}), 2);
    EXPECT_DOUBLE_EQ(distance(box, {{2, 3, 3}, {4, 4, 4}}), 3);
    EXPECT_DOUBLE_EQ(distance({{2, 3, 3}, {4, 4, 4}}, box), 3);
}

TEST(ClusterTree, what_makes_no_sense_is_refused) {
    const auto code = [](const std::vector<Point>& points, const PartitionOptions& options) {
        try {
            partition(build_cluster_tree(points, options.leaf_size), options);
        } catch (const Error& error) {
            return error.code();
        }
        return ErrorCode::ok;
    };
    const std::vector<Point> points = random_points(20, 7);
    EXPECT_EQ(code(points, {}), ErrorCode::ok);
    EXPECT_EQ(code({}, {}), ErrorCode::invalid_argument);
    EXPECT_EQ(code(points, {2, 0}), ErrorCode::invalid_argument);
    EXPECT_EQ(code(points, {0, 15}), ErrorCode::invalid_argument);
    EXPECT_EQ(code(points, {-1, 15}), ErrorCode::invalid_argument);
    EXPECT_EQ(code(points, {std::numeric_limits<double>::quiet_NaN(), 15}), ErrorCode::invalid_argument);
    EXPECT_THROW(partition(build_cluster_tree(points, 5), {2, -3}), Error);
    for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
        std::vector<Point> one = points;
        one[13].y = bad;
        try {
            build_cluster_tree(one, 15);
            FAIL();
        } catch (const Error& error) {
            EXPECT_NE(error.info().cause.find("point 13"), std::string::npos) << error.what();
        }
    }
}

}  // namespace
}  // namespace penstock::hmatrix
