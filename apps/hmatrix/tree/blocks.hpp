// The block partition: which parts of the matrix are stored as they are, and which as a product of two thin factors.
//
// Leaves cover every entry once, and are sorted by first row and then by first column: read in that order, a matrix
// streams from storage while the part of the result it touches moves downwards.
#pragma once

#include <cstdint>
#include <vector>

#include "hmatrix/tree/cluster_tree.hpp"

namespace penstock::hmatrix {

struct Leaf {
    std::int64_t row = 0;     // first row, in the order of the tree
    std::int64_t column = 0;  // first column
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    bool low_rank = false;

    std::int64_t entries() const noexcept { return rows * columns; }
};

struct PartitionOptions {
    double eta = 2;               // admissible: the smaller diameter is at most eta times the distance; above 0
    std::int64_t leaf_size = 15;  // clusters of at most this many unknowns are not divided; low-rank sides are longer
};

// Clusters rows and columns alike. Throws Error{invalid_argument} for options that make no sense.
std::vector<Leaf> partition(const ClusterTree& tree, const PartitionOptions& options);

}  // namespace penstock::hmatrix
