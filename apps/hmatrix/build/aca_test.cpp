// Compares cross approximations with the dense block: smooth kernels, blocks of known rank, and blocks made to deceive
// the method.
#include "hmatrix/build/aca.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "hmatrix/geometry/shapes.hpp"
#include "hmatrix/kernel/problem.hpp"
#include "hmatrix/tree/blocks.hpp"
#include "penstock/error.hpp"
#include "support/sanitized.hpp"

namespace penstock::hmatrix {
namespace {

using Function = std::function<double(std::int64_t, std::int64_t)>;

std::vector<std::int64_t> range(std::int64_t begin, std::int64_t count) {
    std::vector<std::int64_t> all(count);
    std::iota(all.begin(), all.end(), begin);
    return all;
}

// A block with entries f(i, j), and its approximation.
class Block {
  public:
    Block(std::int64_t rows, std::int64_t columns, const Function& f)
        : entries_(f), rows_(range(0, rows)), columns_(range(0, columns)) {}

    AcaResult by(const AcaOptions& options) const { return approximate(entries_, rows_, columns_, options); }

    // ||block - U V^T|| / ||block|| in the Frobenius norm. For a zero block, the norm of the difference.
    double error(const Factors& found) const {
        double wrong = 0, all = 0;
        for (std::size_t j = 0; j < columns_.size(); ++j) {
            std::vector<double> column(rows_.size());
            entries_.column(rows_, columns_[j], column.data());
            for (std::size_t i = 0; i < rows_.size(); ++i) {
                double value = column[i];
                all += value * value;
                for (std::int64_t k = 0; k < found.rank; ++k) {
                    value -= found.u[k * found.rows + i] * found.v[k * found.columns + j];
                }
                wrong += value * value;
            }
        }
        return all > 0 ? std::sqrt(wrong / all) : std::sqrt(wrong);
    }

  private:
    FunctorEntries<Function> entries_;
    std::vector<std::int64_t> rows_;
    std::vector<std::int64_t> columns_;
};

std::vector<double> random_numbers(std::int64_t count, unsigned seed) {
    std::mt19937_64 random(seed);
    std::vector<double> made(count);
    for (double& value : made) value = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
    return made;
}

// A sum of `rank` outer products of random vectors.
Function of_rank(std::int64_t rank, std::int64_t rows, std::int64_t columns, unsigned seed) {
    const auto u = random_numbers(rank * rows, seed), v = random_numbers(rank * columns, seed + 1);
    return [=](std::int64_t i, std::int64_t j) {
        double sum = 0;
        for (std::int64_t k = 0; k < rank; ++k) sum += u[k * rows + i] * v[k * columns + j];
        return sum;
    };
}

Function inverse_distance(double gap) {
    return [=](std::int64_t i, std::int64_t j) {
        return 1 / (gap + 0.01 * static_cast<double>(i) + 0.013 * static_cast<double>(j));
    };
}

AcaOptions with(double eps, bool plus = false) {
    AcaOptions options;
    options.eps = eps;
    options.plus = plus;
    return options;
}

// Of blocks and their approximations: the squares of what is there and of what is wrong.
struct Squares {
    double wrong = 0, all = 0;

    void add(const std::vector<double>& block, const Factors& found) {
        std::vector<double> row(found.columns);
        for (std::int64_t i = 0; i < found.rows; ++i) {
            std::copy_n(&block[i * found.columns], found.columns, row.data());
            for (const double value : row) all += value * value;
            for (std::int64_t k = 0; k < found.rank; ++k) {
                const double u = found.u[k * found.rows + i], *v = &found.v[k * found.columns];
                for (double& value : row) value -= u * *v++;
            }
            for (const double value : row) wrong += value * value;
        }
    }
};

// The entries of a block, row by row.
std::vector<double> dense(const Entries& entries, std::span<const std::int64_t> rows,
                          std::span<const std::int64_t> columns) {
    std::vector<double> block(rows.size() * columns.size());
    for (std::size_t i = 0; i < rows.size(); ++i) entries.row(rows[i], columns, &block[i * columns.size()]);
    return block;
}

TEST(Aca, smooth_kernels_on_surfaces_are_approximated_to_about_eps) {
    const bool small = test::kSanitized;
    for (const Mesh& mesh :
         {sphere(small ? 720 : 1280), cube(small ? 300 : 768), torus(small ? 400 : 900), mirrored_spheres(640)}) {
        const LaplaceProblem problem(mesh);
        const FunctorEntries entries(problem.collocation());
        const ClusterTree tree = build_cluster_tree(problem.centroids(), 15);
        const std::span<const std::int64_t> order(tree.order);
        std::map<std::pair<double, bool>, Squares> by;
        for (const Leaf& leaf : partition(tree, {})) {
            if (!leaf.low_rank) continue;
            const auto rows = order.subspan(leaf.row, leaf.rows), columns = order.subspan(leaf.column, leaf.columns);
            const std::vector<double> block = dense(entries, rows, columns);
            for (const double eps : {1e-2, 1e-4, 1e-6, 1e-8}) {
                for (const bool plus : {false, true}) {
                    const AcaResult found = approximate(entries, rows, columns, with(eps, plus));
                    EXPECT_TRUE(found.converged || found.factors.rank == std::min(leaf.rows, leaf.columns));
                    by[{eps, plus}].add(block, found.factors);
                }
            }
        }
        for (const auto& [options, squares] : by) {
            const auto [eps, plus] = options;
            // The stopping rule looks at the last cross only, and the dropped part may be a little larger.
            EXPECT_LE(std::sqrt(squares.wrong / squares.all), 1.5 * eps)
                << mesh.triangles.size() << " triangles, eps " << eps << ", plus " << plus;
        }
    }
}

TEST(Aca, ends_at_the_rank_of_the_block) {
    for (const bool plus : {false, true}) {
        for (const std::int64_t rank : {1, 2, 7}) {
            const Block block(40, 60, of_rank(rank, 40, 60, 11));
            const AcaResult found = block.by(with(1e-10, plus));
            EXPECT_LE(found.factors.rank, rank + 1) << plus;
            EXPECT_LE(block.error(found.factors), 1e-12) << plus;
            EXPECT_TRUE(found.converged);
            EXPECT_LT(found.evaluated, 40 * 60);
        }
    }
}

TEST(Aca, a_zero_block_is_of_rank_zero) {
    for (const bool plus : {false, true}) {
        const AcaResult found = Block(30, 20, [](std::int64_t, std::int64_t) { return 0.0; }).by(with(1e-4, plus));
        EXPECT_EQ(found.factors.rank, 0);
        EXPECT_TRUE(found.converged);
        EXPECT_TRUE(found.factors.u.empty() && found.factors.v.empty());
        EXPECT_EQ(found.repairs, 0);
    }
}

// Rows of zeros, columns of zeros, or two blocks with zeros between them: the method must look for pivots outside the
// zeros.
TEST(Aca, parts_of_zeros_do_not_hide_the_rest) {
    const Function smooth = inverse_distance(1);
    const Function rows = [=](std::int64_t i, std::int64_t j) { return i < 20 ? 0 : smooth(i, j); };
    const Function columns = [=](std::int64_t i, std::int64_t j) { return j % 3 == 0 ? 0 : smooth(i, j); };
    const Function two = [=](std::int64_t i, std::int64_t j) { return (i < 20) == (j < 30) ? smooth(i, j) : 0; };
    const Function last = [=](std::int64_t i, std::int64_t j) { return i == 39 ? smooth(i, j) : 0; };
    for (const Function& f : {rows, columns, two, last}) {
        for (const bool plus : {false, true}) {
            for (const bool from_last : {false, true}) {
                const Block block(40, 60, f);
                AcaOptions options = with(1e-6, plus);
                options.from_last_row = from_last;
                options.check_entries = 400;
                EXPECT_LE(block.error(block.by(options).factors), 1e-5) << plus << from_last;
            }
        }
    }
}

// One entry sticks out of a smooth block, in a row and a column that no pivot uses.
TEST(Aca, a_spike_is_found_by_the_check_of_entries_and_missed_without_it) {
    const Function spiked = [](std::int64_t i, std::int64_t j) {
        return inverse_distance(1)(i, j) + (i == 11 && j == 43 ? 0.5 : 0.0);
    };
    for (const bool plus : {false, true}) {
        const Block block(60, 50, spiked);
        AcaOptions options = with(1e-5, plus);
        options.check_entries = 0;
        const AcaResult missed = block.by(options);
        EXPECT_GT(block.error(missed.factors), 1e-3) << "otherwise the check has nothing to do";
        EXPECT_EQ(missed.repairs, 0);
        options.check_entries = 20000;
        const AcaResult found = block.by(options);
        EXPECT_GE(found.repairs, 1);
        EXPECT_TRUE(found.converged);
        EXPECT_LE(block.error(found.factors), 1e-4) << plus;
        EXPECT_LT(found.factors.rank, 20);
        EXPECT_EQ(found.told_rank, missed.factors.rank) << "repairs are no part of what HACApK would have stored";
    }
}

TEST(Aca, a_small_block_of_full_rank_is_exact_and_says_so) {
    const std::vector<double> noise = random_numbers(50 * 40, 3);
    const Block block(50, 40, [&](std::int64_t i, std::int64_t j) { return noise[i * 40 + j]; });
    for (const bool plus : {false, true}) {
        const AcaResult found = block.by(with(1e-6, plus));
        EXPECT_FALSE(found.converged);
        EXPECT_EQ(found.factors.rank, 40);
        EXPECT_LE(block.error(found.factors), 1e-10);
    }
}

TEST(Aca, a_large_block_of_no_low_rank_is_an_error_that_says_what_to_do) {
    const std::vector<double> noise = random_numbers(600 * 520, 4);
    const Block block(600, 520, [&](std::int64_t i, std::int64_t j) { return noise[i * 520 + j]; });
    try {
        block.by(with(1e-6));
        FAIL() << "noise was compressed";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::unsupported);
        EXPECT_NE(error.info().cause.find("600 x 520"), std::string::npos) << error.what();
        EXPECT_FALSE(error.info().advice.empty());
    }
}

TEST(Aca, the_size_of_entries_does_not_matter) {
    const Function smooth = inverse_distance(1);
    const AcaResult plain = Block(40, 60, smooth).by(with(1e-6));
    for (const double unit : {1e-100, 1e100, -1.0}) {
        const Block block(40, 60, [=](std::int64_t i, std::int64_t j) { return unit * smooth(i, j); });
        const AcaResult found = block.by(with(1e-6));
        EXPECT_EQ(found.factors.rank, plain.factors.rank) << unit;
        EXPECT_LE(block.error(found.factors), 1e-6) << unit;
    }
}

TEST(Aca, told_rank_is_where_a_coarser_eps_would_have_stopped) {
    const Block block(80, 80, inverse_distance(0.5));
    AcaOptions options = with(1e-9);
    options.told_eps = 1e-4;
    options.check_entries = 0;
    const AcaResult fine = block.by(options);
    const AcaResult coarse = block.by(with(1e-4));
    EXPECT_EQ(fine.told_rank, coarse.factors.rank);
    EXPECT_GT(fine.factors.rank, fine.told_rank);
}

TEST(Aca, entries_that_are_no_numbers_are_named) {
    for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
        for (const bool plus : {false, true}) {
            try {
                const auto f = [=](std::int64_t i, std::int64_t j) { return i == 0 && j == 7 ? bad : 1.0; };
                Block(20, 30, f).by(with(1e-4, plus));
                FAIL();
            } catch (const Error& error) {
                EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
                EXPECT_NE(error.info().cause.find("row 0, column 7"), std::string::npos) << error.what();
            }
        }
    }
}

}  // namespace
}  // namespace penstock::hmatrix
