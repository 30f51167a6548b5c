// Products with batches, in the memory of one device: the seam between a sweep and whoever computes.
//
// Vectors are in the order of the cluster tree, in that device's memory, column-major. Batches may be worked on after
// add() returns; which ones are done with is told, so that their memory can be used for others.
#pragma once

#include <cstdint>
#include <vector>

#include "hmatrix/multiply/source/source.hpp"

namespace penstock::hmatrix {

class BatchProduct {
  public:
    virtual ~BatchProduct() = default;
    // y = 0; then add() adds to it. x and y stay until end().
    struct Operands {
        const double* x = nullptr;
        double* y = nullptr;
        std::int64_t count = 0;
    };
    // At most `batches` of them are held at a time: add() leaves at most one less.
    struct Extent {
        int tiers = 0;
        std::int64_t batches = 1;
    };
    virtual void begin(const Operands& vectors, const Extent& extent) = 0;
    // y += batch * x. Returns the batches whose bytes are no longer needed: this one, or earlier ones.
    virtual std::vector<std::int64_t> add(std::int64_t batch, const BatchView& view) = 0;
    // y is complete. Returns the batches not told of before.
    virtual std::vector<std::int64_t> end() = 0;
};

}  // namespace penstock::hmatrix
