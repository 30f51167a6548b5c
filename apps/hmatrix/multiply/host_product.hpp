// Products with batches on the host, computed by all workers.
//
// Each batch is cut by bytes into as many parts as there are workers, and each part adds to a result of its own. The
// sum therefore does not depend on which worker finishes first. Two runs with the same number of workers agree to the
// last bit, whatever the source of the batches.
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
    // Requires: `file` and `workers` outlive this object.
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
    std::vector<std::vector<std::int64_t>> cuts_;  // for each batch: the first leaf of each part, and the end
    std::vector<LeafProduct> products_;  // one for each worker
    std::vector<std::vector<double>> parts_;  // for each part: its own result, with columns stride_ apart
    std::int64_t stride_;  // distance of columns: unknowns and the kRowsTogether values after them
    // State of the product that is under way:
    Operands vectors_;
    int tiers_ = 0;
    bool single_ = false;         // whether the loops compute in single precision
    std::vector<float> rounded_;  // x in single precision, with columns stride_ apart
    std::vector<int> exponents_;  // column c of rounded_ is x divided by 2^exponents_[c]
};

}  // namespace penstock::hmatrix
