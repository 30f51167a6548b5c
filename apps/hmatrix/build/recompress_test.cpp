// Compares singular values and vectors of a product of factors with constructions of known values.
#include "hmatrix/build/recompress.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

namespace penstock::hmatrix {
namespace {

std::vector<double> drawn_numbers(std::int64_t count, unsigned seed) {
    std::mt19937_64 random(seed);
    std::vector<double> made(count);
    for (double& value : made) value = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
    return made;
}

double dot(const double* x, const double* y, std::int64_t count) {
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += x[i] * y[i];
    return sum;
}

// Orthogonal columns of norm 1, made of cosines.
std::vector<double> orthonormal(std::int64_t rows, std::int64_t columns) {
    std::vector<double> made(rows * columns);
    for (std::int64_t k = 0; k < columns; ++k) {
        for (std::int64_t i = 0; i < rows; ++i) {
            const auto n = static_cast<double>(rows);
            const double angle = M_PI * (static_cast<double>(i) + 0.5) * static_cast<double>(k) / n;
            made[k * rows + i] = std::cos(angle) * std::sqrt((k == 0 ? 1.0 : 2.0) / n);
        }
    }
    return made;
}

double largest_part_left(const std::vector<double>& q, std::int64_t rows, std::int64_t columns) {
    double found = 0;
    for (std::int64_t i = 0; i < columns; ++i) {
        for (std::int64_t j = 0; j <= i; ++j) {
            const double wanted = i == j ? 1 : 0;
            found = std::max(found, std::abs(dot(q.data() + i * rows, q.data() + j * rows, rows) - wanted));
        }
    }
    return found;
}

// ||U V^T - U' diag(sigma) V'^T|| / ||U V^T||, where U and V are the given factors and U' and V' are the decomposition.
double difference(const Factors& given, const SingularFactors& found) {
    double wrong = 0, all = 0;
    for (std::int64_t i = 0; i < given.rows; ++i) {
        for (std::int64_t j = 0; j < given.columns; ++j) {
            double value = 0;
            for (std::int64_t k = 0; k < given.rank; ++k) {
                value += given.u[k * given.rows + i] * given.v[k * given.columns + j];
            }
            all += value * value;
            for (std::int64_t k = 0; k < found.rank(); ++k) {
                value -= found.sigma[k] * found.u[k * given.rows + i] * found.v[k * given.columns + j];
            }
            wrong += value * value;
        }
    }
    return std::sqrt(wrong / all);
}

TEST(Decompose, finds_the_singular_values_a_block_was_made_of) {
    const std::int64_t rows = 60, columns = 45, rank = 12;
    std::vector<double> u = orthonormal(rows, rank);
    const std::vector<double> v = orthonormal(columns, rank);
    std::vector<double> sigma(rank);
    for (std::int64_t k = 0; k < rank; ++k) {
        sigma[k] = std::pow(10.0, -static_cast<double>((k * 5) % rank));  // not sorted
        for (std::int64_t i = 0; i < rows; ++i) u[k * rows + i] *= sigma[k];
    }
    const Factors given{rows, columns, rank, true, u, v};
    const SingularFactors found = decompose(given);
    std::sort(sigma.rbegin(), sigma.rend());
    ASSERT_EQ(found.rank(), rank);
    for (std::int64_t k = 0; k < rank; ++k) EXPECT_NEAR(found.sigma[k], sigma[k], 1e-14) << k;
    EXPECT_LE(largest_part_left(found.u, rows, rank), 1e-12);
    EXPECT_LE(largest_part_left(found.v, columns, rank), 1e-12);
    EXPECT_LE(difference(given, found), 1e-14);
    EXPECT_NEAR(found.norm(), std::sqrt(100.0 / 99), 1e-9);
}

TEST(Decompose, keeps_products_of_any_shape_and_orders_singular_values) {
    const std::array<std::int64_t, 3> shapes[] = {{1, 1, 1},     {1, 50, 1},    {50, 1, 1},    {16, 16, 16},
                                                  {200, 17, 17}, {33, 400, 30}, {128, 128, 60}};
    for (const auto& [rows, columns, rank] : shapes) {
        const auto u = drawn_numbers(rows * rank, 1), v = drawn_numbers(columns * rank, 2);
        const Factors given{rows, columns, rank, true, u, v};
        const SingularFactors found = decompose(given);
        EXPECT_LE(difference(given, found), 1e-13) << rows << " x " << columns;
        EXPECT_TRUE(std::is_sorted(found.sigma.rbegin(), found.sigma.rend()));
        EXPECT_LE(largest_part_left(found.u, rows, found.rank()), 1e-11) << rows << " x " << columns;
        EXPECT_LE(largest_part_left(found.v, columns, found.rank()), 1e-11) << rows << " x " << columns;
    }
}

TEST(Decompose, dependent_columns_leave_nothing_but_rounding) {
    const std::int64_t rows = 40, columns = 30;
    std::vector<double> u = drawn_numbers(rows * 3, 3), v = drawn_numbers(columns * 3, 4);
    for (int copy = 0; copy < 2; ++copy) {  // factors of rank 3 with nine columns
        u.insert(u.end(), u.begin(), u.begin() + rows * 3);
        v.insert(v.end(), v.begin(), v.begin() + columns * 3);
    }
    std::fill_n(u.begin() + rows * 4, rows, 0.0);  // and a column of zeros among them
    const Factors given{rows, columns, 9, true, u, v};
    const SingularFactors found = decompose(given);
    EXPECT_LE(difference(given, found), 1e-14);
    for (std::int64_t k = 3; k < found.rank(); ++k) EXPECT_LE(found.sigma[k], 1e-14 * found.sigma[0]);
    for (const double value : found.u) ASSERT_TRUE(std::isfinite(value));
    EXPECT_EQ(decompose({rows, columns, 0, true, {}, {}}).rank(), 0);
    const Factors zeros{rows, columns, 2, true, std::vector<double>(2 * rows), std::vector<double>(2 * columns)};
    EXPECT_EQ(decompose(zeros).rank(), 0);
}

TEST(Decompose, the_size_of_numbers_does_not_matter) {
    for (const double unit : {1e-100, 1e100}) {
        Factors given{20, 30, 5, true, drawn_numbers(100, 5), drawn_numbers(150, 6)};
        const SingularFactors plain = decompose(given);
        for (double& value : given.u) value *= unit;
        const SingularFactors found = decompose(given);
        ASSERT_EQ(found.rank(), 5);
        for (int k = 0; k < 5; ++k) EXPECT_NEAR(found.sigma[k] / unit, plain.sigma[k], 1e-13 * plain.sigma[0]);
    }
}

}  // namespace
}  // namespace penstock::hmatrix
