// Dividing batches among workers, and joining what they found.
#include "hmatrix/multiply/host_product.hpp"

#include <algorithm>

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

HostProduct::HostProduct(const MatrixFile& file, Workers& workers)
    : file_(file), workers_(workers), products_(workers.count(), LeafProduct(best_kernels())), parts_(workers.count()) {
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

void HostProduct::begin(const Vectors& vectors, int tiers) {
    vectors_ = vectors;
    tiers_ = tiers;
    arithmetic_ = file_.head().accuracies[tiers - 1] < kSingleIsEnough ? Arithmetic::exact : Arithmetic::single;
    for (auto& part : parts_) part.assign(file_.head().unknowns * vectors.count, 0);
}

std::vector<std::int64_t> HostProduct::add(std::int64_t batch, const BatchView& view) {
    const std::vector<std::int64_t>& cut = cuts_[batch];
    const std::int64_t n = file_.head().unknowns;
    workers_.for_each(static_cast<std::int64_t>(cut.size()) - 1, [&](int worker, std::int64_t part) {
        LeafProduct& product = products_[worker];
        LeafTiers bytes;
        bytes.tiers = tiers_;
        for (std::int64_t i = cut[part]; i < cut[part + 1]; ++i) {
            const LeafPlace& leaf = file_.tables().leaves[i];
            bytes.shape = leaf.shape;
            for (int tier = 0; tier < tiers_; ++tier) bytes.bytes[tier] = view.tiers[tier] + leaf.tier_offset[tier];
            for (std::int64_t column = 0; column < vectors_.count; ++column) {
                const double* x = vectors_.x + column * n + leaf.column;
                double* y = parts_[part].data() + column * n + leaf.row;
                if (file_.encoding() == Encoding::tiers) {
                    product.tiers(bytes, arithmetic_, x, y);
                } else {
                    product.doubles(leaf.shape, reinterpret_cast<const double*>(bytes.bytes[0]), x, y);
                }
            }
        }
    });
    return {batch};
}

std::vector<std::int64_t> HostProduct::end() {
    double* const y = vectors_.y;
    const std::int64_t values = file_.head().unknowns * vectors_.count;
    constexpr std::int64_t kAtOnce = 16384;
    workers_.for_each((values + kAtOnce - 1) / kAtOnce, [&](int, std::int64_t block) {
        const std::int64_t begin = block * kAtOnce, end = std::min(values, begin + kAtOnce);
        std::copy(parts_[0].begin() + begin, parts_[0].begin() + end, y + begin);
        for (std::size_t part = 1; part < parts_.size(); ++part) {
            for (std::int64_t i = begin; i < end; ++i) y[i] += parts_[part][i];
        }
    });
    return {};
}

}  // namespace penstock::hmatrix
