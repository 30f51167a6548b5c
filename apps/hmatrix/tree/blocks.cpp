// Partitions the product of a cluster tree with itself.
#include "hmatrix/tree/blocks.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>

#include "hmatrix/text.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

bool admissible(const Cluster& rows, const Cluster& columns, const PartitionOptions& options) {
    if (std::min(rows.size(), columns.size()) <= options.leaf_size) return false;
    const double gap = distance(rows.box, columns.box);
    return gap > 0 && std::min(rows.diameter, columns.diameter) <= options.eta * gap;
}

bool stays_dense(const Cluster& rows, const Cluster& columns, const PartitionOptions& options) {
    return rows.leaf() || columns.leaf() || std::min(rows.size(), columns.size()) <= options.leaf_size + 1;
}

}  // namespace

std::vector<Leaf> partition(const ClusterTree& tree, const PartitionOptions& options) {
    if (!(options.eta > 0) || !std::isfinite(options.eta)) {
        throw Error(ErrorCode::invalid_argument, "divide a matrix into blocks",
                    "eta " + text_of(options.eta) + " is not a positive number", "2 is customary");
    }
    if (options.leaf_size < 1) {
        throw Error(ErrorCode::invalid_argument, "divide a matrix into blocks",
                    "leaf size " + std::to_string(options.leaf_size) + " is below 1", "15 is customary");
    }
    std::vector<Leaf> leaves;
    std::vector<std::pair<std::int64_t, std::int64_t>> left{{0, 0}};
    while (!left.empty()) {
        const auto [r, c] = left.back();
        left.pop_back();
        const Cluster &rows = tree.clusters[r], &columns = tree.clusters[c];
        const bool low_rank = admissible(rows, columns, options);
        if (low_rank || stays_dense(rows, columns, options)) {
            leaves.push_back({rows.begin, columns.begin, rows.size(), columns.size(), low_rank});
            continue;
        }
        for (const std::int64_t row_son : rows.sons) {
            for (const std::int64_t column_son : columns.sons) left.emplace_back(row_son, column_son);
        }
    }
    std::sort(leaves.begin(), leaves.end(), [](const Leaf& one, const Leaf& other) {
        return std::tie(one.row, one.column) < std::tie(other.row, other.column);
    });
    return leaves;
}

}  // namespace penstock::hmatrix
