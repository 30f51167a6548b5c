// Samples rows while leaves pass by, because the whole matrix is never in memory.
#include "hmatrix/assemble/sample.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "hmatrix/file/packed.hpp"

namespace penstock::hmatrix {
namespace {

Factors numbers_of(const TieredLeaf& leaf, Encoding encoding) {
    if (encoding == Encoding::tiers) {
        std::vector<std::span<const std::byte>> tiers(leaf.tiers.begin(), leaf.tiers.end());
        return decode(leaf.shape, tiers);
    }
    const LeafShape& shape = leaf.shape;
    const std::int64_t rank = shape.low_rank ? shape.counts[0][0] : 0;
    Factors made{shape.rows, shape.columns, rank, shape.low_rank, {}, {}};
    made.v.resize(rank * shape.columns);
    made.u.resize(shape.low_rank ? rank * shape.rows : shape.rows * shape.columns);
    const std::size_t v_bytes = made.v.size() * sizeof(double);
    if (v_bytes > 0) std::memcpy(made.v.data(), leaf.tiers[0].data(), v_bytes);
    if (!made.u.empty()) std::memcpy(made.u.data(), leaf.tiers[0].data() + v_bytes, made.u.size() * sizeof(double));
    return made;
}

double row_times(const Factors& block, std::int64_t row, const double* x) {
    double sum = 0;
    if (!block.low_rank) {
        for (std::int64_t j = 0; j < block.columns; ++j) sum += block.u[j * block.rows + row] * x[j];
        return sum;
    }
    for (std::int64_t k = 0; k < block.rank; ++k) {
        double t = 0;
        for (std::int64_t j = 0; j < block.columns; ++j) t += block.v[k * block.columns + j] * x[j];
        sum += block.u[k * block.rows + row] * t;
    }
    return sum;
}

}  // namespace

RowSample::RowSample(std::int64_t unknowns, std::int64_t rows) : x_(unknowns) {
    std::mt19937_64 draw(20240531);
    for (double& value : x_) value = draw() & 1 ? 1.0 : -1.0;
    const std::int64_t count = std::min(rows, unknowns);
    // One row a stripe, so that an error confined to a few clusters is still seen.
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t first = unknowns * i / count, last = unknowns * (i + 1) / count;
        rows_.push_back(first + static_cast<std::int64_t>(draw() % static_cast<std::uint64_t>(last - first)));
    }
    parts_.resize(rows_.size());
}

void RowSample::take(const Leaf& place, const TieredLeaf& leaf, Encoding encoding) {
    auto at = std::lower_bound(rows_.begin(), rows_.end(), place.row);
    if (at == rows_.end() || *at >= place.row + place.rows) return;
    const Factors block = numbers_of(leaf, encoding);
    for (; at != rows_.end() && *at < place.row + place.rows; ++at) {
        const double part = row_times(block, *at - place.row, x_.data() + place.column);
        const std::lock_guard lock(mutex_);
        parts_[at - rows_.begin()].emplace_back(place.column, part);
    }
}

double RowSample::error(Workers& workers, const Entries& entries, const std::vector<std::int64_t>& order) const {
    if (rows_.empty()) return -1;
    std::vector<double> wrong(rows_.size()), right(rows_.size());
    workers.for_each(static_cast<std::int64_t>(rows_.size()), [&](int, std::int64_t i) {
        std::vector<double> row(x_.size());
        entries.row(order[rows_[i]], order, row.data());
        for (std::size_t j = 0; j < row.size(); ++j) right[i] += row[j] * x_[j];
        auto parts = parts_[i];
        // Sorted because a sum depends on its order, and leaves arrive in any order.
        std::sort(parts.begin(), parts.end());
        wrong[i] = -right[i];
        for (const auto& part : parts) wrong[i] += part.second;
    });
    double wrong_square = 0, right_square = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
        wrong_square += wrong[i] * wrong[i];
        right_square += right[i] * right[i];
    }
    return right_square > 0 ? std::sqrt(wrong_square / right_square) : std::sqrt(wrong_square);
}

}  // namespace penstock::hmatrix
