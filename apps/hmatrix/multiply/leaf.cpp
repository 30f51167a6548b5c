// Walking through the pieces of a leaf: V first, for all tiers and digits, and then U with what came of it.
#include "hmatrix/multiply/leaf.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace penstock::hmatrix {
namespace {

// Columns of one digit that one tier adds, and where their vectors begin.
struct Piece {
    const std::int8_t* v = nullptr;
    const std::int8_t* u = nullptr;
    std::int64_t begin = 0;
    std::int64_t count = 0;
    int digit = 0;
};

std::int64_t rounded_up(std::int64_t rows) noexcept {
    return (rows + kRowsTogether - 1) / kRowsTogether * kRowsTogether;
}

float digit_weight(int digit) noexcept {
    constexpr float kWeights[kDigits] = {1.0f, 1.0f / 256, 1.0f / 65536, 1.0f / 16777216};
    return kWeights[digit];
}

template <class Visit>
void each_piece(const LeafTiers& leaf, const Visit& visit) {
    const LeafShape& shape = leaf.shape;
    const std::int64_t v_stride = padded(shape.columns), u_stride = padded(shape.rows);
    for (int tier = 0; tier < leaf.tiers; ++tier) {
        const std::int64_t scales = shape.counts[tier][0] - shape.before(tier, 0);
        const auto* at = reinterpret_cast<const std::int8_t*>(leaf.bytes[tier]) + scales * sizeof(float);
        for (int d = 0; d < kDigits; ++d) {
            const std::int64_t begin = shape.before(tier, d), count = shape.counts[tier][d] - begin;
            if (count == 0) continue;
            if (shape.low_rank) {
                visit(Piece{at, at + count * v_stride, begin, count, d});
                at += count * (v_stride + u_stride);
            } else {
                visit(Piece{nullptr, at, 0, shape.columns, d});
                at += shape.columns * u_stride;
            }
        }
    }
}

// Multiplies t by the scales of the vectors.
template <class Real>
void apply_scales(const LeafTiers& leaf, Real* t) {
    for (int tier = 0; tier < leaf.tiers; ++tier) {
        const std::int64_t begin = leaf.shape.before(tier, 0);
        for (std::int64_t i = begin; i < leaf.shape.counts[tier][0]; ++i) {
            float scale;
            std::memcpy(&scale, leaf.bytes[tier] + (i - begin) * sizeof scale, sizeof scale);
            t[i] *= static_cast<Real>(scale);
        }
    }
}

float dense_scale(const LeafTiers& leaf) {
    float scale;
    std::memcpy(&scale, leaf.bytes[0], sizeof scale);  // a dense block has its scale, and a digit, in tier 0
    return scale;
}

template <class Real>
struct Loops {
    void (*dots)(const Columns<std::int8_t>&, const Real*, Real, Real*);
    void (*sum)(const Columns<std::int8_t>&, const Real*, Real, Real*);
};

template <class Real>
void multiply(const Loops<Real>& loops, const LeafTiers& leaf, const Real* x, Real* t, Real* y) {
    const LeafShape& shape = leaf.shape;
    const std::int64_t v_stride = padded(shape.columns), u_stride = padded(shape.rows);
    if (!shape.low_rank) {
        const Real scale = dense_scale(leaf);
        each_piece(leaf, [&](const Piece& piece) {
            loops.sum({piece.u, shape.rows, piece.count, u_stride}, x, scale * digit_weight(piece.digit), y);
        });
        return;
    }
    each_piece(leaf, [&](const Piece& piece) {
        loops.dots({piece.v, shape.columns, piece.count, v_stride}, x, digit_weight(piece.digit), t + piece.begin);
    });
    apply_scales(leaf, t);
    each_piece(leaf, [&](const Piece& piece) {
        loops.sum({piece.u, shape.rows, piece.count, u_stride}, t + piece.begin, digit_weight(piece.digit), y);
    });
}

}  // namespace

void LeafProduct::tiers(const LeafTiers& leaf, Arithmetic arithmetic, const double* x, double* y) {
    const std::int64_t vectors = leaf.tiers == 0 ? 0 : leaf.shape.counts[leaf.tiers - 1][0];
    if (vectors == 0) return;
    if (arithmetic == Arithmetic::exact) {
        exact_t_.assign(vectors, 0);
        const Loops<double> loops{kernels_.dots_digits_exact, kernels_.sum_digits_exact};
        return multiply(loops, leaf, x, exact_t_.data(), y);
    }
    t_.assign(vectors, 0);
    x_.assign(rounded_up(leaf.shape.columns), 0);
    std::copy_n(x, leaf.shape.columns, x_.begin());
    y_.assign(rounded_up(leaf.shape.rows), 0);
    const Loops<float> loops{kernels_.dots_digits, kernels_.sum_digits};
    multiply(loops, leaf, x_.data(), t_.data(), y_.data());
    for (std::int64_t i = 0; i < leaf.shape.rows; ++i) y[i] += y_[i];
}

void LeafProduct::doubles(const LeafShape& shape, const double* values, const double* x, double* y) {
    const std::int64_t rank = shape.counts[0][0];
    if (!shape.low_rank) {
        kernels_.sum({values, shape.rows, shape.columns, shape.rows}, x, 1, y);
        return;
    }
    exact_t_.assign(rank, 0);
    kernels_.dots({values, shape.columns, rank, shape.columns}, x, 1, exact_t_.data());
    kernels_.sum({values + rank * shape.columns, shape.rows, rank, shape.rows}, exact_t_.data(), 1, y);
}

}  // namespace penstock::hmatrix
