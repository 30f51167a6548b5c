// Products of digits as a GPU computes them, run by host threads from the same source, and compared with the host's own
// loops.
#include "hmatrix/gpu/digits/digit_product.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <thread>
#include <vector>

#include "hmatrix/gpu/crew_rig.hpp"
#include "hmatrix/gpu/digits/digit_plan.hpp"
#include "hmatrix/gpu/matrix_rig.hpp"

namespace penstock::hmatrix {
namespace {

using test::difference;
using test::StoredSphere;

constexpr double kRounding = 2e-6;
constexpr int kShared = gpu::kTileBytes / sizeof(std::uint64_t);

class DigitProduct : public testing::Test {
  protected:
    // As on the GPU, right tiles run after all other tiles of the batch.
    template <class Run>
    std::vector<double> by_tiles(int tiers, const gpu::DigitOptions& options, const Run& run) {
        const gpu::DigitPlan plan = gpu::digit_plan(matrix_.file(), options);
        const std::vector<float> x(matrix_.x().begin(), matrix_.x().end());
        std::vector<double> y(StoredSphere::kTriangles);
        std::vector<float> t(plan.t_numbers);
        const gpu::TileVectors<float> vectors{x.data(), t.data(), y.data()};
        matrix_.each_batch(tiers, [&](std::int64_t number, const BatchView& view) {
            const gpu::DigitPlan::Batch& part = plan.batches[number];
            gpu::DigitBatch batch{};
            std::transform(std::begin(view.tiers), std::end(view.tiers), batch.tiers,
                           [](const std::byte* tier) { return reinterpret_cast<const std::uint32_t*>(tier); });
            batch.tiers_used = tiers;
            batch.table = plan.rows.data() + part.first_row;
            batch.tiles = plan.tiles.data() + part.first_tile;
            batch.count = static_cast<std::int32_t>(part.tiles);
            batch.right_count = static_cast<std::int32_t>(part.right_tiles);
            run(batch, vectors, 0, batch.count);
            run(batch, vectors, batch.count, batch.count + batch.right_count);
        });
        return y;
    }

    std::vector<double> alone(int tiers, const gpu::DigitOptions& options = {}) {
        // Filled with NaN: shared memory must not be read before it is written.
        std::vector<std::uint64_t> shared(kShared, ~std::uint64_t{0});
        return by_tiles(tiers, options, [&](const auto& batch, const auto& vectors, int from, int to) {
            for (int i = from; i < to; ++i) {
                gpu::tile_team(gpu::Alone{}, batch, shared.data()).run(batch.tiles[i], vectors);
            }
        });
    }

    std::vector<double> by_warps(int tiers, const gpu::DigitOptions& options = {}) {
        return by_tiles(tiers, options, [&](const auto& batch, const auto& vectors, int from, int to) {
            gpu::Crew::Shared between;
            std::vector<std::uint64_t> shared(gpu::Crew::kWorkers * kShared, ~std::uint64_t{0});
            std::vector<std::jthread> threads;
            for (int number = 0; number < gpu::Crew::kLanes * gpu::Crew::kWorkers; ++number) {
                threads.emplace_back([&, number] {
                    const gpu::CrewOfWarps crew{{&between, number}};
                    for (int i = from + crew.worker(); i < to; i += gpu::Crew::kWorkers) {
                        std::uint64_t* const own = shared.data() + crew.worker() * kShared;
                        gpu::tile_team(crew, batch, own).run(batch.tiles[i], vectors);
                        crew.sync();
                    }
                });
            }
        });
    }

    StoredSphere matrix_{Encoding::tiers};
};

TEST_F(DigitProduct, agrees_with_the_host_for_every_number_of_tiers) {
    for (int tiers = 1; tiers <= matrix_.file().tiers(); ++tiers) {
        EXPECT_LT(difference(alone(tiers), matrix_.product_by_the_host(tiers)), kRounding) << tiers;
    }
}

TEST_F(DigitProduct, agrees_where_leaves_are_cut_small) {
    for (const int words : {384, 501, 900}) {
        for (int tiers = 1; tiers <= matrix_.file().tiers(); ++tiers) {
            const auto host = matrix_.product_by_the_host(tiers);
            EXPECT_LT(difference(alone(tiers, {words}), host), kRounding) << words << ", " << tiers;
        }
    }
}

TEST_F(DigitProduct, is_the_same_by_lanes_of_warps) {
    const int all = matrix_.file().tiers();
    for (const int tiers : {1, all}) {
        EXPECT_LT(difference(by_warps(tiers), matrix_.product_by_the_host(tiers)), kRounding) << tiers;
    }
    EXPECT_LT(difference(by_warps(all, {384}), matrix_.product_by_the_host(all)), kRounding);
}

// Leaving out a tier changes the product, so the comparisons above depend on each tier.
TEST_F(DigitProduct, differs_where_a_tier_is_left_out) {
    const int all = matrix_.file().tiers();
    EXPECT_GT(difference(alone(all - 1), matrix_.product_by_the_host(all)), 10 * kRounding);
}

template <class Row>
Row row_of(const gpu::DigitPlan& plan, std::int64_t place) {
    return std::bit_cast<Row>(plan.rows[place]);
}

// Each word of the matrix is in one run. In shared memory, runs overlap nothing else and stay within the tile's room.
TEST_F(DigitProduct, a_plan_names_each_word_once) {
    for (const int words : {384, 501, gpu::kDigitWords}) {
        const gpu::DigitPlan plan = gpu::digit_plan(matrix_.file(), {words});
        std::int64_t joined = 0, cut = 0, runs = 0;
        for (std::size_t b = 0; b < plan.batches.size(); ++b) {
            std::vector<std::vector<int>> seen;
            for (const std::uint64_t bytes : matrix_.file().tables().batches[b].tier_bytes) {
                seen.emplace_back(bytes / sizeof(std::uint32_t));
            }
            const gpu::DigitPlan::Batch& part = plan.batches[b];
            for (std::int64_t i = 0; i < part.tiles + part.right_tiles; ++i) {
                const gpu::DigitTile& tile = plan.tiles[part.first_tile + i];
                EXPECT_EQ(tile.kind == gpu::TileKind::right, i >= part.tiles);
                joined += tile.leaves > 1 ? 1 : 0;
                cut += tile.kind != gpu::TileKind::leaves ? 1 : 0;
                std::int64_t row = part.first_row + tile.table;
                row += tile.columns[kMaxTiers - 1] + tile.blocks[kMaxTiers - 1];
                const auto rows = row - part.first_row - tile.table + tile.leaves + tile.runs[kMaxTiers - 1];
                auto end = static_cast<std::uint32_t>(2 * rows);
                for (int k = 0; k < tile.leaves; ++k, ++row) {
                    const auto leaf = row_of<gpu::DigitLeaf>(plan, row);
                    EXPECT_EQ(leaf.place % 4, 0u);
                    EXPECT_GE(leaf.place, end);
                    end = leaf.place + (leaf.count + 3) / 4 * 4;
                }
                EXPECT_TRUE(tile.t_count == 0 || tile.t >= end);
                end += tile.t_count;
                for (int k = 0; k < tile.runs[kMaxTiers - 1]; ++k, ++row, ++runs) {
                    const auto run = row_of<gpu::DigitRun>(plan, row);
                    EXPECT_LT(k, tile.runs[run.tier]);
                    EXPECT_EQ(run.place % 4, run.first % 4);
                    EXPECT_GE(run.place / 4 * 4, end);
                    end = (run.place + run.words + 3) / 4 * 4;
                    for (std::uint32_t word = 0; word < run.words; ++word) {
                        int& times = seen[run.tier][run.first + word];
                        times = run.words == 1 ? 1 : times + 1;  // every part of a dense leaf copies its scale
                    }
                }
                EXPECT_LE(end, static_cast<std::uint32_t>(words));
            }
            for (const std::vector<int>& tier : seen) {
                EXPECT_EQ(std::count(tier.begin(), tier.end(), 1), static_cast<std::int64_t>(tier.size()));
            }
        }
        EXPECT_GT(joined, 10) << words;
        EXPECT_GT(cut, words < gpu::kDigitWords ? 10 : -1) << words;
    }
}

}  // namespace
}  // namespace penstock::hmatrix
