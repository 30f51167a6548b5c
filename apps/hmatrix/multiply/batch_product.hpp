// Products with batches in the memory of one device. This class separates the sweep from the code that computes.
//
// Vectors are column-major, in that device's memory, in the order of the cluster tree. A product may still work on a
// batch after add() has returned. It reports which batches it has finished, so that the caller can reuse their memory.
#pragma once

#include <cstdint>
#include <vector>

#include "hmatrix/multiply/source/source.hpp"

namespace penstock::hmatrix {

class BatchProduct {
  public:
    virtual ~BatchProduct() = default;
    // begin() sets y = 0, and add() accumulates into y. Requires: x and y stay valid until end() returns.
    struct Operands {
        const double* x = nullptr;
        double* y = nullptr;
        std::int64_t count = 0;
    };
    // `batches`: the caller can hold at most this many at a time, so add() may leave at most batches - 1 of them
    // unfinished.
    struct Extent {
        int tiers = 0;
        std::int64_t batches = 1;
    };
    virtual void begin(const Operands& vectors, const Extent& extent) = 0;
    // y += batch * x. Returns the batches whose bytes the product no longer needs: this one, or earlier ones.
    virtual std::vector<std::int64_t> add(std::int64_t batch, const BatchView& view) = 0;
    // Ensures: y is complete. Returns the batches that add() has not reported as finished.
    virtual std::vector<std::int64_t> end() = 0;
};

}  // namespace penstock::hmatrix
