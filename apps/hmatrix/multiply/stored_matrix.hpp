// A stored matrix as a linear operator: it multiplies batch by batch.
//
// It does not know where batches come from or what computes with them. It tells the source the order, takes a batch,
// hands it to the product, and gives it back to the source. Vectors are in the order of the cluster tree (MatrixFile's
// `order`).
#pragma once

#include <cstdint>
#include <vector>

#include "hmatrix/file/reader.hpp"
#include "hmatrix/multiply/batch_product.hpp"
#include "hmatrix/multiply/source/source.hpp"
#include "hmatrix/solve/vectors.hpp"

namespace penstock::hmatrix {

struct StoredOptions {
    int tiers = 0;         // upper bound for the tiers of every product; 0: all tiers
    bool zig_zag = false;  // every other sweep runs backwards, so that it begins with the batches used last
};

class StoredMatrix final : public LinearOperator {
  public:
    // Requires: file, source and product outlive this object.
    StoredMatrix(const MatrixFile& file, BatchSource& source, BatchProduct& product, const StoredOptions& options);
    void apply(const double* x, double* y, std::int64_t count, double accuracy) override;
    std::int64_t sweeps() const noexcept { return sweeps_; }

  private:
    const MatrixFile& file_;
    BatchSource& source_;
    BatchProduct& product_;
    StoredOptions options_;
    std::vector<std::int64_t> forward_;
    std::vector<std::int64_t> backward_;
    std::int64_t sweeps_ = 0;
};

}  // namespace penstock::hmatrix
