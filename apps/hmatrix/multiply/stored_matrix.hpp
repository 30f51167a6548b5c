// A stored matrix as an operator: products on the host, batch after batch, with what the source brings.
//
// Vectors are in the order of the cluster tree (MatrixFile's `order`). Each batch is cut into as many parts as there
// are workers, by bytes, and each part adds to a result of its own: the outcome does not depend on who came first, so
// two runs with as many workers agree to the last bit, whatever the source.
#pragma once

#include <cstdint>
#include <vector>

#include "hmatrix/file/reader.hpp"
#include "hmatrix/multiply/leaf.hpp"
#include "hmatrix/multiply/source.hpp"
#include "hmatrix/solve/vectors.hpp"
#include "hmatrix/threads/workers.hpp"

namespace penstock::hmatrix {

struct StoredOptions {
    int tiers = 0;          // never more than these; 0: all
    bool zig_zag = false;   // every other sweep backwards: what was used last is used first
};

class StoredMatrix final : public LinearOperator {
  public:
    // The file and the source must outlive it.
    StoredMatrix(const MatrixFile& file, BatchSource& source, Workers& workers, const StoredOptions& options);
    void apply(const double* x, double* y, std::int64_t count, double accuracy) override;
    std::int64_t sweeps() const noexcept { return sweeps_; }

  private:
    void round_vectors(const double* x);
    void multiply_leaf(const LeafPlace& leaf, const BatchView& view, LeafProduct& product, double* y) const;
    void multiply(std::int64_t batch, const BatchView& view);
    std::vector<std::int64_t> cuts(const BatchRecord& batch) const;
    void add_parts(double* y) const;

    const MatrixFile& file_;
    BatchSource& source_;
    Workers& workers_;
    StoredOptions options_;
    std::vector<std::vector<std::int64_t>> cuts_;  // of each batch: leaves at which parts begin
    std::vector<LeafProduct> products_;            // of each worker
    std::vector<std::vector<double>> parts_;       // of each part: its result, columns stride_ apart
    std::int64_t stride_;                          // of columns with what kRowsTogether wants behind them
    std::vector<std::int64_t> forward_;
    std::vector<std::int64_t> backward_;
    // Of the product under way.
    const double* x_ = nullptr;
    std::int64_t count_ = 0;
    int tiers_ = 0;
    bool single_ = false;            // precision of the loops
    std::vector<float> rounded_;     // x in it, columns stride_ apart
    std::vector<int> exponents_;     // of the power of two each of its columns was divided by
    std::int64_t sweeps_ = 0;
};

}  // namespace penstock::hmatrix
