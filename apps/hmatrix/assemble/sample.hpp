// The sampled error: some rows of the matrix that was built, against the same rows of the true one.
//
// Both are multiplied with one vector of random signs. What the leaves hold is taken after encoding, as products will
// see it; only leaves that cross a sampled row are looked at.
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
    // `rows` of them, at most all, one drawn by a fixed rule from each of as many stripes; none when 0.
    RowSample(std::int64_t unknowns, std::int64_t rows);
    // From any thread, in any order: what this leaf gives to the sampled rows.
    void take(const Leaf& place, const TieredLeaf& leaf, Encoding encoding);
    // ||(H - A) x|| / ||A x|| on the sampled rows; -1 when there are none. The same on every run.
    double error(Workers& workers, const Entries& entries, const std::vector<std::int64_t>& order) const;

  private:
    std::vector<double> x_;
    std::vector<std::int64_t> rows_;  // positions, rising
    // Of each row: the column a leaf begins at, and what the leaf gives; under mutex_.
    std::vector<std::vector<std::pair<std::int64_t, double>>> parts_;
    std::mutex mutex_;
};

}  // namespace penstock::hmatrix
