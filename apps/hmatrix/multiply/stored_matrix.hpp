// A stored matrix as an operator: products batch after batch, with what the source brings.
//
// Knows neither where batches come from nor what computes with them: it names the order, takes a batch, hands it to the
// product and gives it back. Vectors are in the order of the cluster tree (MatrixFile's `order`).
#pragma once

#include <cstdint>
#include <vector>

#include "hmatrix/file/reader.hpp"
#include "hmatrix/multiply/batch_product.hpp"
#include "hmatrix/multiply/source/source.hpp"
#include "hmatrix/solve/vectors.hpp"

namespace penstock::hmatrix {

struct StoredOptions {
    int tiers = 0;         // never more than these; 0: all
    bool zig_zag = false;  // every other sweep backwards: what was used last is used first
};

class StoredMatrix final : public LinearOperator {
  public:
    // File, source and product must outlive it.
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
