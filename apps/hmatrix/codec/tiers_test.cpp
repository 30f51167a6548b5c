// Encodes and decodes leaves of many kinds: every tier must be within its accuracy. Some leaves cannot be encoded.
#include "hmatrix/codec/tiers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "penstock/error.hpp"
#include "support/sanitized.hpp"

namespace penstock::hmatrix {
namespace {

class Random {
  public:
    explicit Random(unsigned seed) : random_(seed) {}
    double number() { return static_cast<double>(random_() >> 11) * 0x1p-52 - 1; }
    std::int64_t between(std::int64_t low, std::int64_t high) {
        return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
    }
    std::vector<double> numbers(std::int64_t count) {
        std::vector<double> made(count);
        for (double& value : made) value = number();
        return made;
    }

  private:
    std::mt19937_64 random_;
};

Factors dense(std::int64_t rows, std::int64_t columns, std::vector<double> values) {
    return {rows, columns, 0, false, std::move(values), {}};
}

struct FallingTerms {
    std::int64_t rows, columns, rank;
    double fall;  // each term is this times the one before, as with smooth kernels
};
Factors low_rank(Random& random, const FallingTerms& terms) {
    const auto [rows, columns, rank, fall] = terms;
    Factors made{rows, columns, rank, true, random.numbers(rows * rank), random.numbers(columns * rank)};
    for (std::int64_t k = 0; k < rank; ++k) {
        const double weight = std::pow(fall, static_cast<double>(k));
        for (std::int64_t i = 0; i < rows; ++i) made.u[k * rows + i] *= weight;
    }
    return made;
}

std::vector<double> entries(const Factors& leaf) {
    if (!leaf.low_rank) return leaf.u;
    std::vector<double> made(leaf.rows * leaf.columns);
    for (std::int64_t k = 0; k < leaf.rank; ++k) {
        for (std::int64_t j = 0; j < leaf.columns; ++j) {
            for (std::int64_t i = 0; i < leaf.rows; ++i) {
                made[j * leaf.rows + i] += leaf.u[k * leaf.rows + i] * leaf.v[k * leaf.columns + j];
            }
        }
    }
    return made;
}

double norm(const std::vector<double>& values) {
    double square = 0;
    for (const double value : values) square += value * value;
    return std::sqrt(square);
}

std::vector<std::span<const std::byte>> first_tiers(const TieredLeaf& leaf, int tiers) {
    return {leaf.tiers.begin(), leaf.tiers.begin() + tiers};
}

// Error of the leaf decoded from its first `tiers` tiers, relative to the leaf.
double error_of(const Factors& given, const TieredLeaf& leaf, int tiers) {
    const std::vector<double> right = entries(given);
    std::vector<double> wrong = entries(decode(leaf.shape, first_tiers(leaf, tiers)));
    for (std::size_t i = 0; i < wrong.size(); ++i) wrong[i] -= right[i];
    const double all = norm(right);
    return all > 0 ? norm(wrong) / all : norm(wrong);
}

const std::vector<double> kAccuracies{1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 6e-7};

void expect_within(const Factors& given, const std::vector<double>& accuracies) {
    const TieredLeaf leaf = encode(given, accuracies);
    for (int tiers = 1; tiers <= static_cast<int>(accuracies.size()); ++tiers) {
        EXPECT_LE(error_of(given, leaf, tiers), accuracies[tiers - 1])
            << given.rows << " x " << given.columns << ", rank " << given.rank << ", " << tiers << " tiers";
        EXPECT_EQ(static_cast<std::int64_t>(leaf.tiers[tiers - 1].size()), leaf.shape.tier_bytes(tiers - 1));
    }
    for (int tier = 0; tier < kMaxTiers; ++tier) {
        for (int d = 0; d < kDigits; ++d) {
            EXPECT_GE(leaf.shape.counts[tier][d], leaf.shape.before(tier, d));
            EXPECT_LE(leaf.shape.counts[tier][d], leaf.shape.counts[tier][std::max(d - 1, 0)]);
        }
    }
}

TEST(Tiers, every_tier_of_a_low_rank_leaf_is_within_its_accuracy) {
    Random random(1);
    for (int run = 0; run < test::some_of(1500); ++run) {
        const std::int64_t rows = random.between(1, 60), columns = random.between(1, 60);
        const std::int64_t rank = random.between(1, std::min<std::int64_t>({rows, columns, 12}));
        expect_within(low_rank(random, {rows, columns, rank, std::pow(10, 1.5 * random.number() - 1.5)}), kAccuracies);
    }
    expect_within(low_rank(random, {700, 300, 20, 0.3}), kAccuracies);
    expect_within(low_rank(random, {1, 1, 1, 1}), kAccuracies);
}

TEST(Tiers, every_tier_of_a_dense_leaf_is_within_its_accuracy) {
    Random random(2);
    for (int run = 0; run < test::some_of(1500); ++run) {
        const std::int64_t rows = random.between(1, 30), columns = random.between(1, 30);
        expect_within(dense(rows, columns, random.numbers(rows * columns)), kAccuracies);
    }
    expect_within(dense(600, 3, random.numbers(1800)), kAccuracies);
}

TEST(Tiers, accuracies_beyond_single_precision_are_reached_too) {
    Random random(3);
    for (int run = 0; run < test::some_of(200); ++run) {
        expect_within(low_rank(random, {40, 30, 6, 0.2}), {1e-3, 1e-6, 5e-9});
        expect_within(dense(20, 20, random.numbers(400)), {1e-3, 1e-6, 5e-9});
    }
}

TEST(Tiers, smooth_vectors_whose_rounding_is_not_random_are_within_too) {
    for (const std::int64_t rows : {16, 17, 64, 300}) {
        for (const double slope : {0.0, 1e-3, 0.01, 0.5}) {
            Factors made{rows, rows, 2, true, {}, {}};
            for (int k = 0; k < 2; ++k) {
                for (std::int64_t i = 0; i < rows; ++i) {
                    const double at = slope * static_cast<double>(i) / static_cast<double>(rows);
                    made.u.push_back(k == 0 ? 1 + at : 0.01 * at * at);
                    made.v.push_back(k == 0 ? 1 - at / 2 : 1 + at);
                }
            }
            expect_within(made, kAccuracies);
            expect_within(dense(rows, rows, entries(made)), kAccuracies);
        }
    }
}

TEST(Tiers, less_is_stored_for_less_accuracy_and_for_terms_that_weigh_less) {
    Random random(4);
    const Factors given = low_rank(random, {100, 100, 10, 0.1});
    const TieredLeaf leaf = encode(given, kAccuracies);
    std::int64_t bytes = 0;
    for (int tier = 0; tier < kMaxTiers; ++tier) bytes += leaf.shape.tier_bytes(tier);
    EXPECT_LT(leaf.shape.tier_bytes(0), bytes / 5);
    EXPECT_LT(bytes, 8 * given.values() / 5);
    EXPECT_LE(leaf.shape.counts[0][0], 2);
    EXPECT_LE(leaf.shape.counts[5][0], 8) << "the last terms weigh nothing";
    EXPECT_LE(leaf.shape.counts[5][3], 1);
}

TEST(Tiers, zero_blocks_take_no_bytes) {
    Random random(5);
    const TieredLeaf rank_zero = encode({30, 40, 0, true, {}, {}}, kAccuracies);
    const TieredLeaf zeros = encode({30, 40, 2, true, std::vector<double>(60), random.numbers(80)}, kAccuracies);
    const TieredLeaf block = encode(dense(30, 40, std::vector<double>(1200)), kAccuracies);
    for (const TieredLeaf& leaf : {rank_zero, zeros, block}) {
        for (int tier = 0; tier < kMaxTiers; ++tier) EXPECT_EQ(leaf.shape.tier_bytes(tier), 0);
        EXPECT_EQ(norm(entries(decode(leaf.shape, first_tiers(leaf, kMaxTiers)))), 0);
    }
}

TEST(Tiers, entries_of_very_different_sizes_share_a_leaf) {
    Random random(6);
    std::vector<double> values = random.numbers(400);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] *= std::pow(10.0, -static_cast<double>(i % 300));
    values[7] = 0;
    values[8] = 5e-324;
    expect_within(dense(20, 20, values), kAccuracies);
    Factors given = low_rank(random, {20, 20, 8, 1e-40});  // terms fall from 1 to 1e-280
    expect_within(given, kAccuracies);
}

TEST(Tiers, any_unit_will_do_within_single_precision) {
    for (const double unit : {1e-20, 1e-12, 1e12, 1e28}) {
        Random random(7);
        Factors given = low_rank(random, {20, 30, 5, 0.1});
        for (double& value : given.u) value *= unit;
        expect_within(given, kAccuracies);
        expect_within(dense(20, 30, entries(given)), kAccuracies);
    }
}

TEST(Tiers, what_is_below_single_precision_is_left_out) {
    for (const double unit : {1e-50, 1e-300, 5e-324}) {
        Random random(8);
        Factors given = low_rank(random, {20, 30, 3, 0.1});
        for (double& value : given.u) value *= unit;
        for (const Factors& leaf : {given, dense(20, 30, entries(given))}) {
            const TieredLeaf made = encode(leaf, kAccuracies);
            for (int tier = 0; tier < kMaxTiers; ++tier) EXPECT_EQ(made.shape.tier_bytes(tier), 0) << unit;
        }
    }
}

std::string refusal(const Factors& given, const std::vector<double>& accuracies) {
    try {
        encode(given, accuracies);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::unsupported);
        EXPECT_FALSE(error.info().advice.empty());
        return error.info().cause;
    }
    return "";
}

TEST(Tiers, what_four_digits_do_not_reach_and_what_is_too_large_is_refused) {
    Random random(9);
    const Factors thin = low_rank(random, {20, 30, 3, 0.1});
    for (const Factors& leaf : {thin, dense(20, 30, entries(thin))}) {
        EXPECT_NE(refusal(leaf, {1e-3, 1e-12}).find("1e-12 needs more than four digits"), std::string::npos);
        EXPECT_EQ(refusal(leaf, {1e-3, 1e-8}), "");
        for (const double unit : {1e35, 1e100}) {
            Factors large = leaf;
            for (double& value : large.u) value *= unit;
            EXPECT_NE(refusal(large, {1e-3}).find("too large"), std::string::npos) << unit;
        }
    }
}

TEST(Tiers, the_bytes_of_a_leaf_are_as_the_format_says) {
    // A 3 x 2 block: one scale, then digit by digit its two columns, each padded to four bytes.
    const TieredLeaf leaf = encode(dense(3, 2, {126, -63, 1, 0, 0.25, -126}), std::vector<double>{1e-2, 1e-4});
    ASSERT_EQ(leaf.tiers[0].size(), 4u + 8u);
    float scale = 0;
    std::memcpy(&scale, leaf.tiers[0].data(), sizeof scale);
    EXPECT_EQ(scale, 1);
    const std::int8_t first[] = {126, -63, 1, 0, 0, 0, -126, 0};
    EXPECT_EQ(std::memcmp(leaf.tiers[0].data() + 4, first, sizeof first), 0);
    const std::int8_t second[] = {0, 0, 0, 0, 0, 64, 0, 0};
    ASSERT_EQ(leaf.tiers[1].size(), 8u);
    EXPECT_EQ(std::memcmp(leaf.tiers[1].data(), second, sizeof second), 0);
}

}  // namespace
}  // namespace penstock::hmatrix
