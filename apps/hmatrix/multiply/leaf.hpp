// The product of one leaf with vectors, in host memory, computed from the bytes in which the leaf is stored.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "hmatrix/codec/tiers.hpp"
#include "hmatrix/multiply/kernels.hpp"

namespace penstock::hmatrix {

// The first tiers of a leaf, in host memory. Requires: kRowsTogether bytes after each tier are readable.
struct LeafTiers {
    LeafShape shape;
    int tiers = 0;
    const std::byte* bytes[kMaxTiers] = {};
};

// Each worker has its own: it keeps the scratch memory of its products.
class LeafProduct {
  public:
    explicit LeafProduct(const Kernels& kernels) : kernels_(kernels) {}
    // y += block * x for all pairs, in single precision, accumulated in double precision. x points to the values that
    // the block's columns multiply, and y to those of the block's rows. Requires: x and y have the room that
    // kRowsTogether describes.
    void single(const LeafTiers& leaf, const VectorPairs<float>& pairs);
    // As single(), but in double precision, for accuracies that single precision does not reach.
    void exact(const LeafTiers& leaf, const VectorPairs<double>& pairs);
    // As exact(), for a leaf stored as doubles: V and then U, or the dense block.
    void doubles(const LeafShape& shape, const double* values, const VectorPairs<double>& pairs);

  private:
    Kernels kernels_;
    std::vector<float> scales_;
    std::vector<float> singles_;
    std::vector<ListedColumn> columns_;
    std::vector<double> t_;
};

}  // namespace penstock::hmatrix
