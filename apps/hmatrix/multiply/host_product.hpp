// Products with batches on the host, by all workers.
//
// Each batch is cut into as many parts as there are workers, by bytes, and each part adds to a result of its own: the
// outcome does not depend on who came first, so two runs with as many workers agree to the last bit, whatever the
// source of the batches.
#pragma once

#include <cstdint>
#include <vector>

#include "hmatrix/file/reader.hpp"
#include "hmatrix/multiply/batch_product.hpp"
#include "hmatrix/multiply/leaf.hpp"
#include "hmatrix/threads/workers.hpp"

namespace penstock::hmatrix {

class HostProduct final : public BatchProduct {
  public:
    // File and workers must outlive it.
    HostProduct(const MatrixFile& file, Workers& workers);
    void begin(const Operands& vectors, const Extent& extent) override;
    std::vector<std::int64_t> add(std::int64_t batch, const BatchView& view) override;
    std::vector<std::int64_t> end() override;

  private:
    void round_vectors();
    void multiply_leaf(const LeafPlace& leaf, const BatchView& view, LeafProduct& product, double* y) const;
    std::vector<std::int64_t> cuts(const BatchRecord& batch) const;

    const MatrixFile& file_;
    Workers& workers_;
    std::vector<std::vector<std::int64_t>> cuts_;  // of each batch: leaves at which parts begin, and the end
    std::vector<LeafProduct> products_;            // of each worker
    std::vector<std::vector<double>> parts_;       // of each part: its result, columns stride_ apart
    std::int64_t stride_;                          // of columns with what kRowsTogether wants behind them
    // Of the product under way.
    Operands vectors_;
    int tiers_ = 0;
    bool single_ = false;         // precision of the loops
    std::vector<float> rounded_;  // x in it, columns stride_ apart
    std::vector<int> exponents_;  // of the power of two each of its columns was divided by
};

}  // namespace penstock::hmatrix
