// The product of one leaf with vectors, in host memory, straight from the bytes the leaf is stored as.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "hmatrix/codec/tiers.hpp"
#include "hmatrix/multiply/kernels.hpp"

namespace penstock::hmatrix {

// The tiers of a leaf, in host memory: pointers to their bytes, as many as are to be used. kRowsTogether bytes behind
// each tier must be readable.
struct LeafTiers {
    LeafShape shape;
    int tiers = 0;
    const std::byte* bytes[kMaxTiers] = {};
};

// One of each worker: it keeps the memory that products need.
class LeafProduct {
  public:
    explicit LeafProduct(const Kernels& kernels) : kernels_(kernels) {}
    // y += block * x for `count` vectors, for the part of x that faces the block's columns and the part of y its rows
    // give; x and y as kRowsTogether wants them. In single precision, added up in double precision.
    void single(const LeafTiers& leaf, Vectors<const float> x, Vectors<double> y, std::int64_t count);
    // The same in double precision, for accuracies single precision lacks.
    void exact(const LeafTiers& leaf, Vectors<const double> x, Vectors<double> y, std::int64_t count);
    // The same for a leaf of doubles: V, then U, or the block.
    void doubles(const LeafShape& shape, const double* values, Vectors<const double> x, Vectors<double> y,
                 std::int64_t count);

  private:
    Kernels kernels_;
    std::vector<float> scales_;
    std::vector<float> singles_;
    std::vector<DigitColumn> columns_;
    std::vector<double> t_;
};

}  // namespace penstock::hmatrix
