// Compares diagonal blocks with the matrix they are cut from, for every amount of it in memory.
#include "hmatrix/system/diagonal.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "hmatrix/multiply/source/cached_source.hpp"
#include "hmatrix/multiply/stored_rig.hpp"

namespace penstock::hmatrix {
namespace {

// The largest difference from the true entries, relative to the largest entry. Also expects that the blocks tile the
// diagonal.
double largest_error(const std::vector<DiagonalBlock>& blocks, const StoredRig& rig, const MatrixFile& file,
                     std::int64_t block_size) {
    double wrong = 0, largest = 0;
    std::int64_t next = 0;
    for (const DiagonalBlock& block : blocks) {
        EXPECT_EQ(block.offset, next);
        EXPECT_LE(block.size, block_size);
        EXPECT_GE(block.size, 1);
        next += block.size;
        for (std::int64_t j = 0; j < block.size; ++j) {
            for (std::int64_t i = 0; i < block.size; ++i) {
                const auto& order = file.tables().order;
                const double right = rig.given.entry(order[block.offset + i], order[block.offset + j]);
                wrong = std::max(wrong, std::abs(block.values[j * block.size + i] - right));
                largest = std::max(largest, std::abs(right));
            }
        }
    }
    EXPECT_EQ(next, file.head().unknowns);
    return wrong / largest;
}

TEST(DiagonalBlocks, are_those_of_the_matrix_for_any_size_and_any_cache) {
    for (const Encoding encoding : {Encoding::tiers, Encoding::fp64}) {
        StoredRig rig(encoding, 400, 6);
        const MatrixFile file = rig.open();
        for (const std::int64_t block_size : {1, 7, 40, 150, 1024}) {
            for (const std::int64_t pinned_batches : {0, 2, 6}) {
                CacheOptions options;
                options.pinned_batches = pinned_batches;
                options.cache_bytes = (pinned_batches + 2) * (file.largest_batch() + 8192);
                CachedSource source(rig.context, rig.workers, file, options);
                const auto blocks = diagonal_blocks(file, source, rig.workers, {block_size, file.tiers()});
                EXPECT_LE(largest_error(blocks, rig, file, block_size), 1e-3) << block_size;
            }
        }
    }
}

TEST(DiagonalBlocks, of_pinned_tiers_are_coarse_and_cost_no_reading) {
    StoredRig rig(Encoding::tiers, 400, 6);
    const MatrixFile file = rig.open();
    CacheOptions options;
    options.pinned_tiers = 2;
    options.cache_bytes = file.prefix_bytes(2) + 3 * file.largest_batch() + 100000;
    CachedSource source(rig.context, rig.workers, file, options);
    const std::int64_t before = source.counts().bytes_read;
    const auto blocks = diagonal_blocks(file, source, rig.workers, {64, 2});
    EXPECT_EQ(source.counts().bytes_read, before);
    const double error = largest_error(blocks, rig, file, 64);
    EXPECT_LE(error, 0.02);
    EXPECT_GT(error, 1e-6);
}

}  // namespace
}  // namespace penstock::hmatrix
