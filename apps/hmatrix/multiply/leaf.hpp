// The product of one leaf with a vector, in host memory, straight from the bytes the leaf is stored as.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "hmatrix/codec/tiers.hpp"
#include "hmatrix/multiply/kernels.hpp"

namespace penstock::hmatrix {

enum class Arithmetic : unsigned char { single, exact };  // exact: doubles, for accuracies single precision lacks

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
    // y += block * x, for the part of x that faces the block's columns and the part of y its rows give.
    void tiers(const LeafTiers& leaf, Arithmetic arithmetic, const double* x, double* y);
    // The same for a leaf of doubles: V, then U, or the block.
    void doubles(const LeafShape& shape, const double* values, const double* x, double* y);

  private:
    Kernels kernels_;
    std::vector<float> x_;
    std::vector<float> y_;
    std::vector<float> t_;
    std::vector<double> exact_t_;
};

}  // namespace penstock::hmatrix
