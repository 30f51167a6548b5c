// Divides batches among the workers, and adds up their results.
#include "hmatrix/multiply/host_product.hpp"

#include <algorithm>
#include <cmath>

#include "hmatrix/file/packed.hpp"

namespace penstock::hmatrix {
namespace {

// Single precision rounds a product by about 1e-7 of its terms. A matrix of finer accuracy than this is worth doubles.
constexpr double kSingleIsEnough = 3e-7;

std::int64_t leaf_bytes(const MatrixFile& file, const LeafPlace& leaf) {
    std::int64_t bytes = 256;  // fixed cost of a leaf, in equivalents of bytes
    for (int tier = 0; tier < file.tiers(); ++tier) bytes += tier_bytes(file.encoding(), leaf.shape, tier);
    return bytes;
}

}  // namespace

HostProduct::HostProduct(const MatrixFile& file, Workers& workers)
    : file_(file),
      workers_(workers),
      products_(workers.count(), LeafProduct(best_kernels())),
      parts_(workers.count()),
      stride_(file.head().unknowns + kRowsTogether) {
    for (const BatchRecord& batch : file.tables().batches) cuts_.push_back(cuts(batch));
}

std::vector<std::int64_t> HostProduct::cuts(const BatchRecord& batch) const {
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

void HostProduct::begin(const Operands& vectors, const Extent& extent) {
    vectors_ = vectors;
    tiers_ = extent.tiers;
    single_ = file_.encoding() == Encoding::tiers && file_.head().accuracies[tiers_ - 1] >= kSingleIsEnough;
    exponents_.assign(vectors.count, 0);
    if (single_) round_vectors();
    for (auto& part : parts_) part.assign(stride_ * vectors.count, 0);
}

// Rounds x to single precision. Each column is first divided by a power of two that brings its largest number near one.
// The loops then neither overflow nor lose small vectors such as residuals, whatever their unit.
void HostProduct::round_vectors() {
    const std::int64_t n = file_.head().unknowns;
    rounded_.resize(stride_ * vectors_.count);
    workers_.for_each(vectors_.count, [&](int, std::int64_t column) {
        const double* from = vectors_.x + column * n;
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

void HostProduct::multiply_leaf(const LeafPlace& leaf, const BatchView& view, LeafProduct& product, double* y) const {
    const Vectors<double> to{y + leaf.row, stride_};
    const Vectors<const double> from{vectors_.x + leaf.column, file_.head().unknowns};
    if (file_.encoding() == Encoding::fp64) {
        const auto* values = reinterpret_cast<const double*>(view.tiers[0] + leaf.tier_offset[0]);
        return product.doubles(leaf.shape, values, {from, to, vectors_.count});
    }
    LeafTiers bytes{leaf.shape, tiers_, {}};
    for (int tier = 0; tier < tiers_; ++tier) bytes.bytes[tier] = view.tiers[tier] + leaf.tier_offset[tier];
    if (!single_) return product.exact(bytes, {from, to, vectors_.count});
    product.single(bytes, {{rounded_.data() + leaf.column, stride_}, to, vectors_.count});
}

std::vector<std::int64_t> HostProduct::add(std::int64_t batch, const BatchView& view) {
    const std::vector<std::int64_t>& cut = cuts_[batch];
    workers_.for_each(static_cast<std::int64_t>(cut.size()) - 1, [&](int worker, std::int64_t part) {
        double* const y = parts_[part].data();
        for (std::int64_t i = cut[part]; i < cut[part + 1]; ++i) {
            multiply_leaf(file_.tables().leaves[i], view, products_[worker], y);
        }
    });
    return {batch};
}

std::vector<std::int64_t> HostProduct::end() {
    const std::int64_t n = file_.head().unknowns;
    constexpr std::int64_t kAtOnce = 16384;
    const std::int64_t blocks = (n + kAtOnce - 1) / kAtOnce;
    workers_.for_each(blocks * vectors_.count, [&](int, std::int64_t item) {
        const std::int64_t column = item / blocks;
        const std::int64_t begin = item % blocks * kAtOnce, end = std::min(n, begin + kAtOnce);
        double* const to = vectors_.y + column * n;
        std::copy_n(parts_[0].begin() + column * stride_ + begin, end - begin, to + begin);
        for (std::size_t part = 1; part < parts_.size(); ++part) {
            const double* from = parts_[part].data() + column * stride_;
            for (std::int64_t i = begin; i < end; ++i) to[i] += from[i];
        }
        if (!single_) return;
        const double factor = std::ldexp(1.0, exponents_[column]);
        for (std::int64_t i = begin; i < end; ++i) to[i] *= factor;
    });
    return {};
}

}  // namespace penstock::hmatrix
