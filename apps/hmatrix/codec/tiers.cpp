// Encoding: how many digits each vector deserves, and where they go.
#include "hmatrix/codec/tiers.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "hmatrix/build/recompress.hpp"
#include "hmatrix/text.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

[[noreturn]] void too_fine(double accuracy, const char* what) {
    throw Error(ErrorCode::unsupported, "encode a block",
                "an accuracy of " + text_of(accuracy) + " needs more than " + what,
                "store the matrix as fp64, or ask for less accuracy");
}

double largest(const double* values, std::int64_t count) {
    double found = 0;
    for (std::int64_t i = 0; i < count; ++i) found = std::max(found, std::abs(values[i]));
    return found;
}

// One vector pair: its scales, and what is left out of its term with 0 to kDigits digits.
struct Term {
    double scale_u = 1;
    double scale_v = 1;
    std::array<double, kDigits + 1> error{};

    int digits_within(double bound) const {
        int digits = 0;
        while (digits <= kDigits && error[digits] > bound) ++digits;
        return digits;
    }
};

Term term(const SingularFactors& factors, std::int64_t i) {
    Term made;
    made.scale_u = digit_scale(largest(factors.u.data() + i * factors.rows, factors.rows));
    made.scale_v = digit_scale(largest(factors.v.data() + i * factors.columns, factors.columns));
    made.error[0] = factors.sigma[i];
    for (int digits = 1; digits <= kDigits; ++digits) {
        const double of_u = digit_error(made.scale_u, digits) * std::sqrt(factors.rows);
        const double of_v = digit_error(made.scale_v, digits) * std::sqrt(factors.columns);
        made.error[digits] = factors.sigma[i] * std::hypot(of_u, of_v);
    }
    return made;
}

// Digits of each vector so that all errors together are at most `bound`, with about the same error left in each:
// nothing cheaper reaches it. Falling from vector to vector, for one count a digit must say it.
std::vector<int> share(const std::vector<Term>& terms, double bound, double accuracy) {
    std::vector<int> digits(terms.size());
    for (double each = bound;; each *= 0.8) {
        double sum = 0;
        int least = 0;
        for (std::size_t i = terms.size(); i-- > 0;) {
            least = std::max(least, terms[i].digits_within(each));
            if (least > kDigits) too_fine(accuracy, "four digits");
            digits[i] = least;
            sum += terms[i].error[least] * terms[i].error[least];
        }
        if (sum <= bound * bound) return digits;
    }
}

std::vector<DigitCounts> count(const std::vector<Term>& terms, std::span<const double> accuracies, double norm) {
    std::vector<DigitCounts> counts;
    DigitCounts before{};
    for (const double accuracy : accuracies) {
        const std::vector<int> digits = share(terms, accuracy * norm, accuracy);
        DigitCounts now{};
        for (int d = 0; d < kDigits; ++d) {
            const auto have = std::count_if(digits.begin(), digits.end(), [&](int n) { return n > d; });
            now[d] = std::max(before[d], static_cast<std::uint16_t>(have));
        }
        counts.push_back(before = now);
    }
    return counts;
}

void set_counts(LeafShape& shape, const std::vector<DigitCounts>& counts) {
    for (int tier = 0; tier < kMaxTiers; ++tier) {
        shape.counts[tier] = counts[std::min<std::size_t>(tier, counts.size() - 1)];
    }
}

// All digits of columns of equal length, each column with a scale of its own.
class SplitColumns {
  public:
    SplitColumns(const std::vector<double>& values, std::int64_t rows) : rows_(rows), stride_(padded(rows)) {
        const auto columns = rows == 0 ? 0 : static_cast<std::int64_t>(values.size()) / rows;
        for (auto& plane : planes_) plane.resize(columns * stride_);
        values_ = values.data();
    }
    void split(std::int64_t column, double scale) {
        std::int8_t* out[kDigits];
        for (int d = 0; d < kDigits; ++d) out[d] = planes_[d].data() + column * stride_;
        split_digits(values_ + column * rows_, rows_, scale, {out[0], out[1], out[2], out[3]});
    }
    void append(int digit, std::int64_t begin, std::int64_t end, std::vector<std::byte>& to) const {
        const auto* bytes = reinterpret_cast<const std::byte*>(planes_[digit].data());
        to.insert(to.end(), bytes + begin * stride_, bytes + end * stride_);
    }

  private:
    const double* values_ = nullptr;
    std::int64_t rows_;
    std::int64_t stride_;
    std::array<std::vector<std::int8_t>, kDigits> planes_;
};

void append_scale(double scale, std::vector<std::byte>& to) {
    const auto value = static_cast<float>(scale);
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    to.insert(to.end(), bytes, bytes + sizeof value);
}

TieredLeaf encode_low_rank(Factors factors, std::span<const double> accuracies) {
    const SingularFactors singular = decompose(std::move(factors));
    if (singular.rank() > 0xffff) too_fine(accuracies.back(), "65,535 vectors");
    std::vector<Term> terms;
    for (std::int64_t i = 0; i < singular.rank(); ++i) terms.push_back(term(singular, i));
    TieredLeaf leaf{{singular.rows, singular.columns, true, {}}, {}};
    set_counts(leaf.shape, count(terms, accuracies, singular.norm()));

    SplitColumns u(singular.u, singular.rows), v(singular.v, singular.columns);
    for (std::int64_t i = 0; i < leaf.shape.counts.back()[0]; ++i) {
        u.split(i, terms[i].scale_u);
        v.split(i, terms[i].scale_v);
    }
    for (int tier = 0; tier < static_cast<int>(accuracies.size()); ++tier) {
        std::vector<std::byte>& to = leaf.tiers[tier];
        to.reserve(leaf.shape.tier_bytes(tier));
        for (std::int64_t i = leaf.shape.before(tier, 0); i < leaf.shape.counts[tier][0]; ++i) {
            append_scale(singular.sigma[i] * terms[i].scale_u * terms[i].scale_v, to);
        }
        for (int d = 0; d < kDigits; ++d) {
            v.append(d, leaf.shape.before(tier, d), leaf.shape.counts[tier][d], to);
            u.append(d, leaf.shape.before(tier, d), leaf.shape.counts[tier][d], to);
        }
    }
    return leaf;
}

TieredLeaf encode_dense(const Factors& factors, std::span<const double> accuracies) {
    const std::vector<double>& block = factors.u;
    const double scale = digit_scale(largest(block.data(), factors.values()));
    double square = 0;
    for (const double value : block) square += value * value;
    const double root = std::sqrt(static_cast<double>(factors.values()));
    std::vector<DigitCounts> counts;
    for (const double accuracy : accuracies) {
        int digits = square > 0 ? 1 : 0;
        while (digits > 0 && root * digit_error(scale, digits) > accuracy * std::sqrt(square)) {
            if (++digits > kDigits) too_fine(accuracy, "four digits");
        }
        DigitCounts now{};
        std::fill_n(now.begin(), digits, std::uint16_t{1});
        counts.push_back(now);
    }
    TieredLeaf leaf{{factors.rows, factors.columns, false, {}}, {}};
    set_counts(leaf.shape, counts);
    SplitColumns split(block, factors.rows);
    for (std::int64_t j = 0; j < factors.columns; ++j) split.split(j, scale);
    for (int tier = 0; tier < static_cast<int>(accuracies.size()); ++tier) {
        std::vector<std::byte>& to = leaf.tiers[tier];
        if (leaf.shape.before(tier, 0) < leaf.shape.counts[tier][0]) append_scale(scale, to);
        for (int d = 0; d < kDigits; ++d) {
            if (leaf.shape.before(tier, d) < leaf.shape.counts[tier][d]) split.append(d, 0, factors.columns, to);
        }
    }
    return leaf;
}

void add_digit(const std::byte* bytes, std::int64_t rows, double weight, double* to) {
    for (std::int64_t i = 0; i < rows; ++i) to[i] += weight * static_cast<std::int8_t>(bytes[i]);
}

}  // namespace

std::int64_t LeafShape::tier_bytes(int tier) const noexcept {
    const std::int64_t column = low_rank ? padded(rows) + padded(columns) : columns * padded(rows);
    std::int64_t bytes = (counts[tier][0] - before(tier, 0)) * static_cast<std::int64_t>(sizeof(float));
    for (int d = 0; d < kDigits; ++d) bytes += (counts[tier][d] - before(tier, d)) * column;
    return bytes;
}

TieredLeaf encode(Factors factors, std::span<const double> accuracies) {
    return factors.low_rank ? encode_low_rank(std::move(factors), accuracies) : encode_dense(factors, accuracies);
}

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
