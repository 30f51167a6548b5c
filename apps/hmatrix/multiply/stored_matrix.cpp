// Sweeps over a stored matrix.
#include "hmatrix/multiply/stored_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "hmatrix/file/packed.hpp"

namespace penstock::hmatrix {
namespace {

// Single precision rounds products off by about 1e-7 of the terms; what a matrix says below this is worth doubles.
constexpr double kSingleIsEnough = 3e-7;

std::int64_t leaf_bytes(const MatrixFile& file, const LeafPlace& leaf) {
    std::int64_t bytes = 256;  // what a leaf costs however small it is
    for (int tier = 0; tier < file.tiers(); ++tier) bytes += tier_bytes(file.encoding(), leaf.shape, tier);
    return bytes;
}

}  // namespace

StoredMatrix::StoredMatrix(const MatrixFile& file, BatchSource& source, Workers& workers, const StoredOptions& options)
    : file_(file),
      source_(source),
      workers_(workers),
      options_(options),
      products_(workers.count(), LeafProduct(best_kernels())),
      parts_(workers.count()),
      stride_(file.head().unknowns + kRowsTogether),
      forward_(file.head().batches),
      backward_(file.head().batches) {
    std::iota(forward_.begin(), forward_.end(), std::int64_t{0});
    std::reverse_copy(forward_.begin(), forward_.end(), backward_.begin());
    for (const BatchRecord& batch : file.tables().batches) cuts_.push_back(cuts(batch));
}

std::vector<std::int64_t> StoredMatrix::cuts(const BatchRecord& batch) const {
    const auto& leaves = file_.tables().leaves;
    std::int64_t total = 0;
    for (std::int64_t i = 0; i < batch.leaves; ++i) total += leaf_bytes(file_, leaves[batch.first_leaf + i]);
    std::vector<std::int64_t> found{batch.first_leaf};
    std::int64_t passed = 0;
    for (std::int64_t i = batch.first_leaf; i < batch.first_leaf + batch.leaves; ++i) {
        const auto part = static_cast<std::int64_t>(found.size());
        const bool enough = passed * workers_.count() >= total * part;
        if (part < workers_.count() && enough && i > found.back()) found.push_back(i);
        passed += leaf_bytes(file_, leaves[i]);
    }
    found.push_back(batch.first_leaf + batch.leaves);
    return found;
}

// x in single precision, each column by a power of two that brings its largest number near one: the loops neither
// overflow nor lose small vectors, such as residuals, whatever their unit.
void StoredMatrix::round_vectors(const double* x) {
    const std::int64_t n = file_.head().unknowns;
    rounded_.resize(stride_ * count_);
    workers_.for_each(count_, [&](int, std::int64_t column) {
        const double* from = x + column * n;
        float* to = rounded_.data() + column * stride_;
        double largest = 0;
        for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(from[i]));
        const bool usable = largest > 0 && std::isfinite(largest);
        exponents_[column] = usable ? std::clamp(std::ilogb(largest), -1000, 1000) : 0;
        const double factor = std::ldexp(1.0, -exponents_[column]);
        for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(factor * from[i]);
        std::fill_n(to + n, kRowsTogether, 0.0f);
    });
}

void StoredMatrix::multiply_leaf(const LeafPlace& leaf, const BatchView& view, LeafProduct& product, double* y) const {
    const Vectors<double> to{y + leaf.row, stride_};
    const Vectors<const double> from{x_ + leaf.column, file_.head().unknowns};
    if (file_.encoding() == Encoding::fp64) {
        const auto* values = reinterpret_cast<const double*>(view.tiers[0] + leaf.tier_offset[0]);
        return product.doubles(leaf.shape, values, from, to, count_);
    }
    LeafTiers bytes{leaf.shape, tiers_, {}};
    for (int tier = 0; tier < tiers_; ++tier) bytes.bytes[tier] = view.tiers[tier] + leaf.tier_offset[tier];
    if (!single_) return product.exact(bytes, from, to, count_);
    product.single(bytes, {rounded_.data() + leaf.column, stride_}, to, count_);
}

void StoredMatrix::multiply(std::int64_t batch, const BatchView& view) {
    const std::vector<std::int64_t>& cut = cuts_[batch];
    workers_.for_each(static_cast<std::int64_t>(cut.size()) - 1, [&](int worker, std::int64_t part) {
        double* const y = parts_[part].data();
        for (std::int64_t i = cut[part]; i < cut[part + 1]; ++i) {
            multiply_leaf(file_.tables().leaves[i], view, products_[worker], y);
        }
    });
}

void StoredMatrix::add_parts(double* y) const {
    const std::int64_t n = file_.head().unknowns;
    constexpr std::int64_t kAtOnce = 16384;
    const std::int64_t blocks = (n + kAtOnce - 1) / kAtOnce;
    workers_.for_each(blocks * count_, [&](int, std::int64_t item) {
        const std::int64_t column = item / blocks;
        const std::int64_t begin = item % blocks * kAtOnce, end = std::min(n, begin + kAtOnce);
        double* const to = y + column * n;
        std::copy_n(parts_[0].begin() + column * stride_ + begin, end - begin, to + begin);
        for (std::size_t part = 1; part < parts_.size(); ++part) {
            const double* from = parts_[part].data() + column * stride_;
            for (std::int64_t i = begin; i < end; ++i) to[i] += from[i];
        }
        if (!single_) return;
        const double factor = std::ldexp(1.0, exponents_[column]);
        for (std::int64_t i = begin; i < end; ++i) to[i] *= factor;
    });
}

void StoredMatrix::apply(const double* x, double* y, std::int64_t count, double accuracy) {
    tiers_ = file_.tiers_for(accuracy);
    if (options_.tiers > 0) tiers_ = std::min(tiers_, options_.tiers);
    single_ = file_.encoding() == Encoding::tiers && file_.head().accuracies[tiers_ - 1] >= kSingleIsEnough;
    x_ = x;
    count_ = count;
    exponents_.assign(count, 0);
    if (single_) round_vectors(x);
    for (auto& part : parts_) part.assign(stride_ * count, 0);
    const bool back = options_.zig_zag && sweeps_ % 2 == 1;
    const auto& order = back ? backward_ : forward_;
    const auto& next = options_.zig_zag && !back ? backward_ : forward_;
    source_.begin({order, next, tiers_});
    for (const std::int64_t batch : order) {
        multiply(batch, source_.take(batch));
        source_.give_back(batch);
    }
    add_parts(y);
    ++sweeps_;
}

}  // namespace penstock::hmatrix
