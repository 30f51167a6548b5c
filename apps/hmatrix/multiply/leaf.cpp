// The kernels do single precision on their own. For double precision, this file visits the pieces of a leaf twice:
// first V for all tiers and digits, then U with the factors that V gave.
#include "hmatrix/multiply/leaf.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace penstock::hmatrix {
namespace {

// The columns of one digit that one tier adds, and the number of their first vector.
struct DigitColumns {
    const std::int8_t* v = nullptr;
    const std::int8_t* u = nullptr;
    std::int64_t begin = 0;
    std::int64_t count = 0;
    double weight = 1;
};

template <class Visit>
void each_digit_of_tier(const LeafTiers& leaf, const Visit& visit) {
    const LeafShape& shape = leaf.shape;
    const std::int64_t v_stride = padded(shape.columns), u_stride = padded(shape.rows);
    for (int tier = 0; tier < leaf.tiers; ++tier) {
        const std::int64_t scales = shape.counts[tier][0] - shape.before(tier, 0);
        const auto* at = reinterpret_cast<const std::int8_t*>(leaf.bytes[tier]) + scales * sizeof(float);
        for (int d = 0; d < kDigits; ++d) {
            const std::int64_t begin = shape.before(tier, d), count = shape.counts[tier][d] - begin;
            if (count == 0) continue;
            const double weight = std::ldexp(1.0, -8 * d);
            if (shape.low_rank) {
                visit(DigitColumns{at, at + count * v_stride, begin, count, weight});
                at += count * (v_stride + u_stride);
            } else {
                visit(DigitColumns{nullptr, at, 0, shape.columns, weight});
                at += shape.columns * u_stride;
            }
        }
    }
}

// Multiplies element i of t by the scale of vector i.
void apply_scales(const LeafTiers& leaf, double* t) {
    for (int tier = 0; tier < leaf.tiers; ++tier) {
        const std::int64_t begin = leaf.shape.before(tier, 0);
        for (std::int64_t i = begin; i < leaf.shape.counts[tier][0]; ++i) {
            float scale;
            std::memcpy(&scale, leaf.bytes[tier] + (i - begin) * sizeof scale, sizeof scale);
            t[i] *= scale;
        }
    }
}

float dense_scale(const LeafTiers& leaf) {
    float scale;
    std::memcpy(&scale, leaf.bytes[0], sizeof scale);
    return scale;
}

}  // namespace

void LeafProduct::single(const LeafTiers& leaf, const VectorPairs<float>& pairs) {
    if (leaf.tiers == 0) return;
    const DigitCounts& last = leaf.shape.counts[leaf.tiers - 1];
    const std::size_t columns = std::size_t{last[0]} + last[1] + last[2] + last[3] + 3;
    if (leaf.shape.low_rank && columns_.size() < columns) {
        columns_.resize(2 * columns);
        scales_.resize(2 * columns);
        singles_.resize(2 * columns);
    }
    const TieredBytes bytes{leaf.shape.rows, leaf.shape.columns,          leaf.shape.low_rank,
                            leaf.tiers,      leaf.shape.counts[0].data(), leaf.bytes};
    kernels_.tiers(bytes, pairs, {scales_.data(), singles_.data(), columns_.data()});
}

void LeafProduct::exact(const LeafTiers& leaf, const VectorPairs<double>& pairs) {
    const LeafShape& shape = leaf.shape;
    const std::int64_t vectors = leaf.tiers == 0 ? 0 : shape.counts[leaf.tiers - 1][0];
    if (vectors == 0) return;
    const std::int64_t v_stride = padded(shape.columns), u_stride = padded(shape.rows);
    for (std::int64_t c = 0; c < pairs.count; ++c) {
        const double* from = pairs.x.values + c * pairs.x.stride;
        double* to = pairs.y.values + c * pairs.y.stride;
        t_.assign(vectors, shape.low_rank ? 0.0 : dense_scale(leaf));
        if (shape.low_rank) {
            each_digit_of_tier(leaf, [&](const DigitColumns& piece) {
                kernels_.dots_digits({piece.v, shape.columns, piece.count, v_stride}, from, piece.weight,
                                     t_.data() + piece.begin);
            });
            apply_scales(leaf, t_.data());
        }
        each_digit_of_tier(leaf, [&](const DigitColumns& piece) {
            const double* factors = shape.low_rank ? t_.data() + piece.begin : from;
            const double weight = shape.low_rank ? piece.weight : piece.weight * t_[0];
            kernels_.sum_digits({piece.u, shape.rows, piece.count, u_stride}, factors, weight, to);
        });
    }
}

void LeafProduct::doubles(const LeafShape& shape, const double* values, const VectorPairs<double>& pairs) {
    const std::int64_t rank = shape.counts[0][0];
    for (std::int64_t c = 0; c < pairs.count; ++c) {
        const double* from = pairs.x.values + c * pairs.x.stride;
        double* to = pairs.y.values + c * pairs.y.stride;
        if (!shape.low_rank) {
            kernels_.sum({values, shape.rows, shape.columns, shape.rows}, from, 1, to);
            continue;
        }
        t_.assign(rank, 0);
        kernels_.dots({values, shape.columns, rank, shape.columns}, from, 1, t_.data());
        kernels_.sum({values + rank * shape.columns, shape.rows, rank, shape.rows}, t_.data(), 1, to);
    }
}

}  // namespace penstock::hmatrix
