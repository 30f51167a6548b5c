// Factored diagonal blocks: they invert blocks of every size, and refusals name the block.
#include "hmatrix/solve/block_jacobi.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "hmatrix/solve/dense_rig.hpp"
#include "hmatrix/solve/solve.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

std::string refusal(std::int64_t unknowns, const std::vector<DiagonalBlock>& blocks) {
    try {
        factor_blocks(unknowns, blocks);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
        return error.info().cause;
    }
    return "";
}

// A random block with a small diagonal, so that pivots move.
DiagonalBlock random_block(std::int64_t offset, std::int64_t size) {
    DiagonalBlock block{offset, size, random_numbers(size * size, 100 + size)};
    for (std::int64_t i = 0; i < size; ++i) block.values[i + i * size] *= 1e-3;
    if (size == 1) block.values[0] = 2;
    return block;
}

TEST(BlockJacobi, undoes_the_product_with_its_blocks) {
    std::vector<DiagonalBlock> blocks;
    std::int64_t unknowns = 0;
    for (const std::int64_t size : {1, 2, 3, 31, 32, 33, 64, 100, 257}) {
        blocks.push_back(random_block(unknowns, size));
        unknowns += size;
    }
    const std::int64_t columns = 3;
    const std::vector<double> known = random_numbers(unknowns * columns, 1);
    std::vector<double> x(known.size()), y(known.size());
    for (std::int64_t c = 0; c < columns; ++c) {
        for (const DiagonalBlock& block : blocks) {
            for (std::int64_t j = 0; j < block.size; ++j) {
                for (std::int64_t i = 0; i < block.size; ++i) {
                    x[c * unknowns + block.offset + i] +=
                        block.values[i + j * block.size] * known[c * unknowns + block.offset + j];
                }
            }
        }
    }
    const FactoredBlocks factored = factor_blocks(unknowns, blocks);
    make_host_block_jacobi(factored)->apply(x.data(), y.data(), columns, 0.5);
    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], known[i], 1e-9) << i;
    std::vector<double> again(y.size());
    make_host_block_jacobi(factor_blocks(unknowns, blocks))->apply(x.data(), again.data(), columns, 0);
    EXPECT_EQ(again, y) << "the same bits on every run";
}

TEST(BlockJacobi, the_largest_block_is_factored_to_working_precision) {
    const DiagonalBlock block = random_block(0, kLargestBlock);
    const std::vector<double> known = random_numbers(kLargestBlock, 2);
    std::vector<double> x(known.size()), y(known.size());
    for (std::int64_t j = 0; j < block.size; ++j) {
        for (std::int64_t i = 0; i < block.size; ++i) x[i] += block.values[i + j * block.size] * known[j];
    }
    make_host_block_jacobi(factor_blocks(kLargestBlock, {block}))->apply(x.data(), y.data(), 1, 0);
    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], known[i], 1e-8) << i;
}

TEST(BlockJacobi, saves_sweeps_of_an_integral_equation) {
    const std::int64_t n = 240, size = 40;
    Dense matrix = single_layer(n);
    for (std::int64_t j = 0; j < n; ++j) {  // unknowns of very different scale, as on a graded mesh
        for (std::int64_t i = 0; i < n; ++i) matrix.at(i, j) *= std::pow(10.0, static_cast<double>(j % 5) / 2);
    }
    std::vector<DiagonalBlock> blocks;
    for (std::int64_t offset = 0; offset < n; offset += size) {
        DiagonalBlock& block = blocks.emplace_back(DiagonalBlock{offset, size, {}});
        for (std::int64_t j = 0; j < size; ++j) {
            for (std::int64_t i = 0; i < size; ++i) block.values.push_back(matrix.at(offset + i, offset + j));
        }
    }
    const auto preconditioner = make_host_block_jacobi(factor_blocks(n, blocks));
    const std::vector<double> b = random_numbers(n, 3);
    std::vector<double> plain(b.size()), helped(b.size());
    const auto space = make_host_vectors(n);
    DenseOperator sweeps(matrix);
    SolveOptions options{.method = Method::gmres, .tolerance = 1e-6};
    const SolveResult without = solve(*space, {sweeps, b, plain}, options);
    options.preconditioner = preconditioner.get();
    const SolveResult with = solve(*space, {sweeps, b, helped}, options);
    EXPECT_TRUE(with.converged);
    EXPECT_LT(2 * with.sweeps, without.sweeps) << with.sweeps << " against " << without.sweeps;
}

TEST(BlockJacobi, what_is_no_set_of_diagonal_blocks_is_refused_by_name) {
    const DiagonalBlock first = random_block(0, 4), second = random_block(4, 4);
    EXPECT_EQ(refusal(8, {first, second}), "");
    EXPECT_EQ(refusal(9, {first, second}), "the blocks end at row 8 of 9");
    EXPECT_EQ(refusal(8, {first}), "the blocks end at row 4 of 8");
    EXPECT_EQ(refusal(8, {second, first}), "block 0, rows 4 to 7, does not begin at row 0");
    EXPECT_EQ(refusal(9, {first, random_block(5, 4)}), "block 1, rows 5 to 8, does not begin at row 4");
    EXPECT_EQ(refusal(7, {first, random_block(3, 4)}), "block 1, rows 3 to 6, does not begin at row 4");
    EXPECT_EQ(refusal(1025, {random_block(0, 1025)}), "block 0 has 1025 rows");
    EXPECT_EQ(refusal(4, {{0, 0, {}}, first}), "block 0 has 0 rows");
    EXPECT_EQ(refusal(4, {{0, 4, {1, 2}}}), "block 0, rows 0 to 3, holds 2 numbers");
    DiagonalBlock bad = second;
    bad.values[7] = std::numeric_limits<double>::infinity();
    EXPECT_EQ(refusal(8, {first, bad}), "block 1, rows 4 to 7, holds a number that is not finite");
    bad = second;
    for (int i = 0; i < 4; ++i) bad.values[12 + i] = bad.values[i];  // two triangles with the same corners
    EXPECT_NE(refusal(8, {first, bad}).find("is singular"), std::string::npos);
}

}  // namespace
}  // namespace penstock::hmatrix
