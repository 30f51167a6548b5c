// Compares products with one leaf, for every kind of loops that this machine has, with the product of the decoded leaf.
//
// Bytes and vectors lie in memory of exactly the promised size, so the address sanitizer notices an access beyond it.
#include "hmatrix/multiply/leaf.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "hmatrix/assemble/small_problem_rig.hpp"

namespace penstock::hmatrix {
namespace {

const std::vector<double> kAccuracies{1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 6e-7};

std::vector<Kernels> all_kinds() {
    std::vector<Kernels> kinds;
    for (const char* name : {"plain", "avx2", "avx512"}) {
        Kernels found;
        if (kernels_of(name, found)) kinds.push_back(found);
    }
    return kinds;
}

// A leaf, and the memory of its tiers, each tier in its own allocation.
class StoredLeaf {
  public:
    StoredLeaf(const Factors& factors, int tiers) : leaf_(encode(factors, kAccuracies)) {
        bytes.shape = leaf_.shape;
        bytes.tiers = tiers;
        for (int tier = 0; tier < tiers; ++tier) {
            const auto& from = leaf_.tiers[tier];
            memory_.push_back(std::make_unique<std::byte[]>(from.size() + kRowsTogether));
            std::copy(from.begin(), from.end(), memory_.back().get());
            // Not zero: these bytes must not change the result.
            std::fill_n(memory_.back().get() + from.size(), kRowsTogether, std::byte{0x7f});
            bytes.bytes[tier] = memory_.back().get();
        }
    }
    // y += leaf * x from the decoded numbers. Adds the magnitudes of the terms to `size`.
    void reference(const double* x, double* y, double& size) const {
        const std::vector<std::span<const std::byte>> tiers(leaf_.tiers.begin(), leaf_.tiers.begin() + bytes.tiers);
        const Factors block = decode(bytes.shape, tiers);
        for (std::int64_t i = 0; i < block.rows; ++i) {
            for (std::int64_t j = 0; j < block.columns; ++j) {
                double entry = block.low_rank ? 0 : block.u[j * block.rows + i];
                for (std::int64_t k = 0; k < block.rank; ++k) {
                    entry += block.u[k * block.rows + i] * block.v[k * block.columns + j];
                }
                y[i] += entry * x[j];
                size = std::max(size, std::abs(y[i]));
            }
        }
    }
    LeafTiers bytes;

  private:
    TieredLeaf leaf_;
    std::vector<std::unique_ptr<std::byte[]>> memory_;
};

Factors some_leaf(std::int64_t rows, std::int64_t columns, bool low_rank) {
    if (!low_rank) return {rows, columns, 0, false, random_vector(rows * columns, 1), {}};
    const std::int64_t rank = std::min<std::int64_t>({rows, columns, 7});
    Factors made{rows, columns, rank, true, random_vector(rows * rank, 2), random_vector(columns * rank, 3)};
    for (std::int64_t i = 0; i < rows * rank; ++i) made.u[i] *= std::pow(0.1, static_cast<double>(i / rows));
    return made;
}

struct Sizes {
    std::int64_t rows;
    std::int64_t columns;
};
constexpr Sizes kSizes[] = {{1, 1},   {1, 40},  {40, 1},  {15, 16}, {16, 15},  {16, 16},
                            {17, 31}, {33, 64}, {63, 65}, {7, 200}, {211, 19}, {128, 128}};

template <class Value>
std::unique_ptr<Value[]> vectors(std::int64_t stride, std::int64_t count, std::int64_t values, unsigned seed) {
    auto made = std::make_unique<Value[]>(stride * count);
    for (std::int64_t c = 0; c < count; ++c) {
        const auto numbers = random_vector(stride, seed + static_cast<unsigned>(c));
        for (std::int64_t i = 0; i < stride; ++i) {
            // Values after the vector are read, but must not change the result.
            made[c * stride + i] = static_cast<Value>(i < values ? numbers[i] : 1e30);
        }
    }
    return made;
}

TEST(LeafProduct, singles_of_every_kind_agree_with_the_leafs_numbers) {
    for (const Kernels& kind : all_kinds()) {
        LeafProduct product(kind);
        for (const auto& [rows, columns] : kSizes) {
            for (const bool low_rank : {false, true}) {
                for (int tiers = 0; tiers <= kMaxTiers; ++tiers) {
                    const StoredLeaf leaf(some_leaf(rows, columns, low_rank), tiers);
                    const std::int64_t count = 1 + (rows + tiers) % 9;
                    const std::int64_t x_stride = columns + kRowsTogether, y_stride = rows + kRowsTogether;
                    const auto x = vectors<float>(x_stride, count, columns, 4);
                    const auto y = vectors<double>(y_stride, count, rows, 5);
                    const std::vector<double> before(y.get(), y.get() + y_stride * count);
                    product.single(leaf.bytes, {{x.get(), x_stride}, {y.get(), y_stride}, count});
                    for (std::int64_t c = 0; c < count; ++c) {
                        const std::vector<double> from(x.get() + c * x_stride, x.get() + c * x_stride + columns);
                        std::vector<double> right(before.begin() + c * y_stride, before.begin() + (c + 1) * y_stride);
                        double size = 1;
                        if (tiers > 0) leaf.reference(from.data(), right.data(), size);
                        for (std::int64_t i = 0; i < y_stride; ++i) {
                            ASSERT_NEAR(y[c * y_stride + i], right[i], i < rows ? 1e-6 * size : 0)
                                << kind.name << " " << rows << " x " << columns << (low_rank ? " low rank, " : ", ")
                                << tiers << " tiers, row " << i;
                        }
                    }
                }
            }
        }
    }
}

// x and y have exactly the leaf's size: doubles() must not touch anything beyond.
TEST(LeafProduct, doubles_of_every_kind_agree_with_the_leafs_numbers) {
    for (const Kernels& kind : all_kinds()) {
        LeafProduct product(kind);
        for (const auto& [rows, columns] : kSizes) {
            for (const bool low_rank : {false, true}) {
                const Factors factors = some_leaf(rows, columns, low_rank);
                const auto x = vectors<double>(columns, 3, columns, 6);
                for (int tiers = 0; tiers <= kMaxTiers; ++tiers) {
                    const StoredLeaf leaf(factors, tiers);
                    const auto y = vectors<double>(rows, 3, rows, 7);
                    std::vector<double> right(y.get(), y.get() + 3 * rows);
                    product.exact(leaf.bytes, {{x.get(), columns}, {y.get(), rows}, 3});
                    for (int c = 0; c < 3; ++c) {
                        double size = 1;
                        if (tiers > 0) leaf.reference(x.get() + c * columns, right.data() + c * rows, size);
                        for (std::int64_t i = c * rows; i < (c + 1) * rows; ++i) ASSERT_NEAR(y[i], right[i], 1e-12);
                    }
                }
                LeafShape shape{rows, columns, low_rank, {}};
                for (auto& counts : shape.counts) counts[0] = static_cast<std::uint16_t>(factors.rank);
                const auto values = std::make_unique<double[]>(factors.values());
                std::copy(factors.v.begin(), factors.v.end(), values.get());
                std::copy(factors.u.begin(), factors.u.end(), values.get() + factors.v.size());
                const auto y = vectors<double>(rows, 1, rows, 8);
                std::vector<double> right(y.get(), y.get() + rows);
                product.doubles(shape, values.get(), {{x.get(), columns}, {y.get(), rows}, 1});
                for (std::int64_t i = 0; i < rows; ++i) {
                    for (std::int64_t j = 0; j < columns; ++j) {
                        double entry = low_rank ? 0 : factors.u[j * rows + i];
                        for (std::int64_t k = 0; k < factors.rank; ++k) {
                            entry += factors.u[k * rows + i] * factors.v[k * columns + j];
                        }
                        right[i] += entry * x[j];
                    }
                    ASSERT_NEAR(y[i], right[i], 1e-12) << kind.name;
                }
            }
        }
    }
}

TEST(LeafProduct, what_lies_behind_x_does_not_count_even_where_it_is_no_number) {
    const StoredLeaf leaf(some_leaf(20, 20, true), kMaxTiers);
    for (const Kernels& kind : all_kinds()) {
        std::vector<float> x(20 + kRowsTogether, 1.0f);
        std::fill(x.begin() + 20, x.end(), std::nanf(""));
        std::vector<double> y(20 + kRowsTogether);
        LeafProduct(kind).single(leaf.bytes, {{x.data(), 36}, {y.data(), 36}, 1});
        for (const double value : y) ASSERT_TRUE(std::isfinite(value)) << kind.name;
    }
}

TEST(Kernels, are_found_by_name_and_the_best_is_one_of_them) {
    Kernels found;
    EXPECT_TRUE(kernels_of("plain", found));
    EXPECT_STREQ(found.name, "plain");
    EXPECT_FALSE(kernels_of("abacus", found));
    const Kernels best = best_kernels();
    ASSERT_TRUE(kernels_of(best.name, found));
    EXPECT_EQ(found.tiers, best.tiers);
}

}  // namespace
}  // namespace penstock::hmatrix
