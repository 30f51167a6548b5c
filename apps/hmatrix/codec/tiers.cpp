// Chooses how many digits each vector gets, and packs the digits into tiers.
//
// The encoder measures errors: after it has split a vector, it knows the error that remains with each number of digits.
// Errors of different vectors are nearly orthogonal, so their squares add up. The factor kMeasured leaves a margin for
// what is not orthogonal.
#include "hmatrix/codec/tiers.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "hmatrix/build/recompress.hpp"
#include "hmatrix/codec/split_columns.hpp"
#include "hmatrix/text.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

constexpr double kMeasured = 0.95;

[[noreturn]] void too_fine(double accuracy, const char* what) {
    throw Error(ErrorCode::unsupported, "encode a block",
                "an accuracy of " + text_of(accuracy) + " needs more than " + what,
                "store the matrix as fp64, or ask for less accuracy");
}

// Scales and products are in single precision, so entries must stay well below its largest number.
void need_size(double size) {
    if (size <= kLargestEntry) return;
    throw Error(ErrorCode::unsupported, "encode a block",
                "entries of " + text_of(size) + " are too large for tiers, which hold up to " + text_of(kLargestEntry),
                "store the matrix as fp64, or take other units");
}

float scale_of(double size) {
    need_size(size * kTopDigit);
    return static_cast<float>(size);
}

// A smaller scale is subnormal, and has lost digits, or is zero.
bool negligible(float scale) { return scale < std::numeric_limits<float>::min(); }

double largest(const double* values, std::int64_t count) {
    double found = 0;
    for (std::int64_t i = 0; i < count; ++i) found = std::max(found, std::abs(values[i]));
    return found;
}

void append_scale(float scale, std::vector<std::byte>& to) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&scale);
    to.insert(to.end(), bytes, bytes + sizeof scale);
}

void set_counts(LeafShape& shape, const std::vector<DigitCounts>& counts) {
    for (int tier = 0; tier < kMaxTiers; ++tier) {
        shape.counts[tier] = counts[std::min<std::size_t>(tier, counts.size() - 1)];
    }
}

// One vector pair. error[n] is the error of its term with n digits, for n from 0 to kDigits.
struct Term {
    float scale = 0;  // scale of the pair: sigma * scale_u * scale_v, rounded to float
    double scale_u = 1;
    double scale_v = 1;
    std::array<double, kDigits + 1> error{};  // expected errors until measure() replaces them
    bool measured = false;

    int digits_within(double bound) const {
        int digits = 0;
        while (digits <= kDigits && error[digits] > bound) ++digits;
        return digits;
    }
};

class LowRank {
  public:
    explicit LowRank(SingularFactors factors)
        : factors_(std::move(factors)), u_(factors_.u, factors_.rows), v_(factors_.v, factors_.columns) {
        for (std::int64_t i = 0; i < factors_.rank(); ++i) terms_.push_back(term(i));
    }

    TieredLeaf encoded(std::span<const double> accuracies) {
        TieredLeaf leaf{{factors_.rows, factors_.columns, true, {}}, {}};
        set_counts(leaf.shape, count(accuracies));
        for (int tier = 0; tier < static_cast<int>(accuracies.size()); ++tier) {
            std::vector<std::byte>& to = leaf.tiers[tier];
            to.reserve(leaf.shape.tier_bytes(tier));
            for (std::int64_t i = leaf.shape.before(tier, 0); i < leaf.shape.counts[tier][0]; ++i) {
                append_scale(terms_[i].scale, to);
            }
            for (int d = 0; d < kDigits; ++d) {
                v_.append(d, leaf.shape.before(tier, d), leaf.shape.counts[tier][d], to);
                u_.append(d, leaf.shape.before(tier, d), leaf.shape.counts[tier][d], to);
            }
        }
        return leaf;
    }

  private:
    Term term(std::int64_t i) const {
        Term made;
        made.scale_u = digit_scale(largest(factors_.u.data() + i * factors_.rows, factors_.rows));
        made.scale_v = digit_scale(largest(factors_.v.data() + i * factors_.columns, factors_.columns));
        made.scale = scale_of(factors_.sigma[i] * made.scale_u * made.scale_v);
        if (negligible(made.scale)) return made;
        made.scale_v = made.scale / (factors_.sigma[i] * made.scale_u);  // scale_v absorbs the rounding of `scale`
        made.error[0] = factors_.sigma[i];
        for (int digits = 1; digits <= kDigits; ++digits) {
            const double of_u = digit_error(made.scale_u, digits) * std::sqrt(factors_.rows);
            const double of_v = digit_error(made.scale_v, digits) * std::sqrt(factors_.columns);
            made.error[digits] = factors_.sigma[i] * std::hypot(of_u, of_v);
        }
        return made;
    }

    void measure(std::int64_t i) {
        Term& one = terms_[i];
        if (one.measured) return;
        one.measured = true;
        const auto of_u = u_.split(i, one.scale_u), of_v = v_.split(i, one.scale_v);
        for (int d = 0; d < kDigits; ++d) one.error[d + 1] = factors_.sigma[i] * std::sqrt(of_u[d] + of_v[d]);
    }

    // Chooses the number of digits of each vector so that all errors together are at most `bound`. Each vector keeps
    // about the same error, which is the cheapest choice. The numbers must not rise from one vector to the next,
    // because the format keeps one count a digit.
    std::vector<int> share(double bound, double accuracy) {
        std::vector<int> digits(terms_.size());
        for (double each = bound;; each *= 0.8) {
            double sum = 0;
            int least = 0;
            for (std::size_t i = terms_.size(); i-- > 0;) {
                least = std::max(least, terms_[i].digits_within(each));
                if (least > kDigits) too_fine(accuracy, "four digits");
                if (least > 0) measure(static_cast<std::int64_t>(i));
                digits[i] = least;
                sum += terms_[i].error[least] * terms_[i].error[least];
            }
            if (sum <= bound * bound) return digits;
        }
    }

    std::vector<DigitCounts> count(std::span<const double> accuracies) {
        std::vector<DigitCounts> counts;
        DigitCounts before{};
        for (const double accuracy : accuracies) {
            const std::vector<int> digits = share(kMeasured * accuracy * factors_.norm(), accuracy);
            DigitCounts now{};
            for (int d = 0; d < kDigits; ++d) {
                const auto have = std::count_if(digits.begin(), digits.end(), [&](int n) { return n > d; });
                if (have > std::numeric_limits<std::uint16_t>::max()) too_fine(accuracy, "65,535 vectors");
                now[d] = std::max(before[d], static_cast<std::uint16_t>(have));
            }
            counts.push_back(before = now);
        }
        return counts;
    }

    SingularFactors factors_;
    SplitColumns u_;
    SplitColumns v_;
    std::vector<Term> terms_;
};

TieredLeaf encode_dense(const Factors& factors, std::span<const double> accuracies) {
    const std::vector<double>& block = factors.u;
    const float scale = scale_of(digit_scale(largest(block.data(), factors.values())));
    double square = 0, left[kDigits] = {};
    for (const double value : block) square += value * value;
    if (negligible(scale)) square = 0;
    SplitColumns split(block, factors.rows);
    for (std::int64_t j = 0; square > 0 && j < factors.columns; ++j) {
        const auto of_column = split.split(j, scale);
        for (int d = 0; d < kDigits; ++d) left[d] += of_column[d];
    }
    std::vector<DigitCounts> counts;
    for (const double accuracy : accuracies) {
        int digits = square > 0 ? 1 : 0;
        while (digits > 0 && left[digits - 1] > accuracy * accuracy * square) {
            if (++digits > kDigits) too_fine(accuracy, "four digits");
        }
        DigitCounts now{};
        std::fill_n(now.begin(), digits, std::uint16_t{1});
        counts.push_back(now);
    }
    TieredLeaf leaf{{factors.rows, factors.columns, false, {}}, {}};
    set_counts(leaf.shape, counts);
    for (int tier = 0; tier < static_cast<int>(accuracies.size()); ++tier) {
        std::vector<std::byte>& to = leaf.tiers[tier];
        if (leaf.shape.before(tier, 0) < leaf.shape.counts[tier][0]) append_scale(scale, to);
        for (int d = 0; d < kDigits; ++d) {
            if (leaf.shape.before(tier, d) < leaf.shape.counts[tier][d]) split.append(d, 0, factors.columns, to);
        }
    }
    return leaf;
}

}  // namespace

std::int64_t LeafShape::tier_bytes(int tier) const noexcept {
    const std::int64_t column = low_rank ? padded(rows) + padded(columns) : columns * padded(rows);
    std::int64_t bytes = (counts[tier][0] - before(tier, 0)) * static_cast<std::int64_t>(sizeof(float));
    for (int d = 0; d < kDigits; ++d) bytes += (counts[tier][d] - before(tier, d)) * column;
    return bytes;
}

TieredLeaf encode(Factors factors, std::span<const double> accuracies) {
    if (!factors.low_rank) return encode_dense(factors, accuracies);
    return LowRank(decompose(std::move(factors))).encoded(accuracies);
}

}  // namespace penstock::hmatrix
