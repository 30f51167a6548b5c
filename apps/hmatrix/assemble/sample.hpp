// The sampled error: some rows of the assembled matrix, compared with the same rows of the true matrix.
//
// Both are multiplied with one vector of random signs. A leaf is sampled after encoding, as products will see it. Only
// leaves that cross a sampled row cost time.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "hmatrix/file/format.hpp"
#include "hmatrix/kernel/entries.hpp"
#include "hmatrix/threads/workers.hpp"
#include "hmatrix/tree/blocks.hpp"

namespace penstock::hmatrix {

class RowSample {
  public:
    // Divides the unknowns into `rows` stripes and draws one row from each by a fixed rule. Draws at most all rows, and
    // none for 0.
    RowSample(std::int64_t unknowns, std::int64_t rows);
    // Adds the leaf's contribution to the sampled rows. Any thread may call it, in any order.
    void take(const Leaf& place, const TieredLeaf& leaf, Encoding encoding);
    // ||(H - A) x|| / ||A x|| on the sampled rows, or -1 without rows. Every run gives the same value.
    double error(Workers& workers, const Entries& entries, const std::vector<std::int64_t>& order) const;

  private:
    std::vector<double> x_;
    std::vector<std::int64_t> rows_;  // positions in the cluster tree, rising
    // For each row: the first column of a leaf and the leaf's contribution. mutex_ guards it.
    std::vector<std::vector<std::pair<std::int64_t, double>>> parts_;
    std::mutex mutex_;
};

}  // namespace penstock::hmatrix
