// Decodes a leaf: adds up the digits of all tiers, then multiplies by the scales.
#include <cmath>
#include <cstring>

#include "hmatrix/codec/tiers.hpp"

namespace penstock::hmatrix {
namespace {

void add_digit(const std::byte* bytes, std::int64_t rows, double weight, double* to) {
    for (std::int64_t i = 0; i < rows; ++i) to[i] += weight * static_cast<std::int8_t>(bytes[i]);
}

}  // namespace

Factors decode(const LeafShape& shape, std::span<const std::span<const std::byte>> tiers) {
    const auto& last = shape.counts[tiers.size() - 1];
    const std::int64_t rank = shape.low_rank ? last[0] : 0;
    Factors made{shape.rows, shape.columns, rank, shape.low_rank, {}, {}};
    made.u.resize(shape.low_rank ? rank * shape.rows : shape.rows * shape.columns);
    made.v.resize(rank * shape.columns);
    std::vector<float> scales;
    for (int tier = 0; tier < static_cast<int>(tiers.size()); ++tier) {
        const std::byte* at = tiers[tier].data();
        for (std::int64_t i = shape.before(tier, 0); i < shape.counts[tier][0]; ++i, at += sizeof(float)) {
            std::memcpy(&scales.emplace_back(), at, sizeof(float));
        }
        const auto columns_of = [&](std::vector<double>& to, std::int64_t rows, std::int64_t begin, std::int64_t end,
                                    int digit) {
            for (std::int64_t j = begin; j < end; ++j, at += padded(rows)) {
                add_digit(at, rows, std::ldexp(1.0, -8 * digit), to.data() + j * rows);
            }
        };
        for (int d = 0; d < kDigits; ++d) {
            const std::int64_t begin = shape.before(tier, d), end = shape.counts[tier][d];
            if (shape.low_rank) {
                columns_of(made.v, shape.columns, begin, end, d);
                columns_of(made.u, shape.rows, begin, end, d);
            } else if (begin < end) {
                columns_of(made.u, shape.rows, 0, shape.columns, d);
            }
        }
    }
    const std::int64_t pieces = shape.low_rank ? rank : static_cast<std::int64_t>(scales.size());
    const std::int64_t values = pieces == 0 ? 0 : static_cast<std::int64_t>(made.u.size()) / pieces;
    for (std::int64_t i = 0; i < pieces; ++i) {
        for (std::int64_t r = 0; r < values; ++r) made.u[i * values + r] *= scales[i];
    }
    return made;
}

}  // namespace penstock::hmatrix
