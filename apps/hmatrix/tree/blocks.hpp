// The block partition: which parts of the matrix are stored dense, and which as a product of two thin factors.
//
// The leaves cover every entry once. They are sorted by first row and then by first column. In that order a product
// streams the matrix from storage while the rows of the result that it updates move downwards.
#pragma once

#include <cstdint>
#include <vector>

#include "hmatrix/tree/cluster_tree.hpp"

namespace penstock::hmatrix {

struct Leaf {
    std::int64_t row = 0;     // first row, in the order of the cluster tree
    std::int64_t column = 0;  // first column
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    bool low_rank = false;

    std::int64_t entries() const noexcept { return rows * columns; }
};

struct PartitionOptions {
    double eta = 2;  // a block is admissible if the smaller diameter is at most eta times the distance; above 0
    // Clusters with at most this many unknowns are not divided; both sides of a low-rank block are longer.
    std::int64_t leaf_size = 15;
};

// Partitions the matrix; rows and columns use the same cluster tree. Throws Error{invalid_argument} for eta <= 0 or not
// finite, and for leaf_size < 1.
std::vector<Leaf> partition(const ClusterTree& tree, const PartitionOptions& options);

}  // namespace penstock::hmatrix
