// Sweeps over the batches of a stored matrix.
#include "hmatrix/multiply/stored_matrix.hpp"

#include <algorithm>
#include <numeric>

namespace penstock::hmatrix {

StoredMatrix::StoredMatrix(const MatrixFile& file, BatchSource& source, BatchProduct& product,
                           const StoredOptions& options)
    : file_(file),
      source_(source),
      product_(product),
      options_(options),
      forward_(file.head().batches),
      backward_(file.head().batches) {
    std::iota(forward_.begin(), forward_.end(), std::int64_t{0});
    std::reverse_copy(forward_.begin(), forward_.end(), backward_.begin());
}

void StoredMatrix::apply(const double* x, double* y, std::int64_t count, double accuracy) {
    int tiers = file_.tiers_for(accuracy);
    if (options_.tiers > 0) tiers = std::min(tiers, options_.tiers);
    const bool back = options_.zig_zag && sweeps_ % 2 == 1;
    const auto& order = back ? backward_ : forward_;
    const auto& next = options_.zig_zag && !back ? backward_ : forward_;
    source_.begin({order, next, tiers});
    product_.begin({x, y, count}, {tiers, source_.room()});
    for (const std::int64_t batch : order) {
        for (const std::int64_t done : product_.add(batch, source_.take(batch))) source_.give_back(done);
    }
    for (const std::int64_t done : product_.end()) source_.give_back(done);
    ++sweeps_;
}

}  // namespace penstock::hmatrix
