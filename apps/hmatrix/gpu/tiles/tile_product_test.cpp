// Products of tiles as a GPU computes them, run by host threads from the same source, and compared with the host's own
// loops.
#include "hmatrix/gpu/tiles/tile_product.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "hmatrix/gpu/crew_rig.hpp"
#include "hmatrix/gpu/matrix_rig.hpp"
#include "hmatrix/gpu/tiles/tile_plan.hpp"

namespace penstock::hmatrix {
namespace {

using test::difference;
using test::StoredSphere;

constexpr double kTileRounding = 1e-13;

class TileProduct : public testing::Test {
  protected:
    // As on the GPU, right tiles run after all other tiles of the batch.
    template <class Run>
    std::vector<double> by_tiles(const gpu::TileOptions& options, const Run& run) {
        const gpu::TilePlan plan = gpu::tile_plan(matrix_.file(), options);
        std::vector<double> y(StoredSphere::kTriangles), t(plan.t_numbers);
        const gpu::TileVectors<double> vectors{matrix_.x().data(), t.data(), y.data()};
        matrix_.each_batch(1, [&](std::int64_t number, const BatchView& view) {
            const gpu::TilePlan::Batch& part = plan.batches[number];
            const gpu::Tile* const tiles = plan.tiles.data() + part.first_tile;
            const auto count = static_cast<std::int32_t>(part.tiles);
            const auto right = static_cast<std::int32_t>(part.right_tiles);
            const gpu::TileBatch batch{reinterpret_cast<const double*>(view.tiers[0]),
                                       plan.rows.data() + part.first_row, tiles, count, right};
            run(batch, vectors, 0, count);
            run(batch, vectors, count, count + right);
        });
        return y;
    }

    std::vector<double> alone(const gpu::TileOptions& options = {}) {
        std::vector<double> shared(options.numbers);
        return by_tiles(options, [&](const auto& batch, const auto& vectors, int from, int to) {
            gpu::TileTeam<gpu::Alone> team({}, batch, shared.data());
            for (int i = from; i < to; ++i) team.run(batch.tiles[i], vectors);
        });
    }

    std::vector<double> by_warps(const gpu::TileOptions& options = {}) {
        return by_tiles(options, [&](const auto& batch, const auto& vectors, int from, int to) {
            gpu::Crew::Shared between;
            std::vector<double> shared(gpu::Crew::kWorkers * options.numbers);
            std::vector<std::jthread> threads;
            for (int number = 0; number < gpu::Crew::kLanes * gpu::Crew::kWorkers; ++number) {
                threads.emplace_back([&, number] {
                    const gpu::CrewOfWarps crew{{&between, number}};
                    gpu::TileTeam<gpu::CrewOfWarps> team(crew, batch, shared.data() + crew.worker() * options.numbers);
                    for (int i = from + crew.worker(); i < to; i += gpu::Crew::kWorkers) {
                        team.run(batch.tiles[i], vectors);
                        crew.sync();
                    }
                });
            }
        });
    }

    StoredSphere matrix_{Encoding::fp64};
};

TEST_F(TileProduct, agrees_with_the_host) {
    EXPECT_LT(difference(alone(), matrix_.product_by_the_host(0)), kTileRounding);
}

TEST_F(TileProduct, agrees_where_leaves_are_cut_small) {
    for (const int numbers : {64, 100, 257}) {
        EXPECT_LT(difference(alone({numbers}), matrix_.product_by_the_host(0)), kTileRounding) << numbers;
    }
}

TEST_F(TileProduct, is_the_same_by_lanes_of_warps) {
    EXPECT_LT(difference(by_warps(), matrix_.product_by_the_host(0)), kTileRounding);
    EXPECT_LT(difference(by_warps({120}), matrix_.product_by_the_host(0)), kTileRounding);
}

// Each number of the matrix is in one tile, within the tile's room.
TEST_F(TileProduct, a_plan_names_each_number_once) {
    for (const int numbers : {64, 257, gpu::kTileNumbers}) {
        const gpu::TilePlan plan = gpu::tile_plan(matrix_.file(), {numbers});
        std::int64_t joined = 0, cut = 0;
        for (std::size_t b = 0; b < plan.batches.size(); ++b) {
            std::vector<int> seen(matrix_.file().tables().batches[b].bytes / sizeof(double));
            const gpu::TilePlan::Batch& part = plan.batches[b];
            for (std::int64_t i = 0; i < part.tiles + part.right_tiles; ++i) {
                const gpu::Tile& tile = plan.tiles[part.first_tile + i];
                EXPECT_EQ(tile.kind == gpu::TileKind::right, i >= part.tiles);
                if (tile.kind != gpu::TileKind::leaves) {
                    ++cut;
                    const int factor = tile.kind == gpu::TileKind::left ? tile.rows : tile.columns;
                    EXPECT_LE(gpu::room_of_run(tile.rows) * tile.columns + factor, numbers);
                    for (int j = 0; j < tile.columns; ++j) {
                        for (int row = 0; row < tile.rows; ++row) ++seen[tile.first + j * tile.stride + row];
                    }
                    continue;
                }
                joined += tile.columns > 1 ? 1 : 0;
                int room = tile.columns * gpu::kTileLeafNumbers;
                for (int j = 0; j < tile.columns; ++j) {
                    const gpu::TileLeaf& leaf = plan.rows[part.first_row + tile.first + j];
                    const int size = leaf.rank == gpu::kFull ? tile.rows * leaf.columns
                                                             : (tile.rows + leaf.columns) * leaf.rank;
                    EXPECT_EQ(leaf.size, size);
                    EXPECT_EQ(leaf.place % 2, 0);
                    EXPECT_GE(leaf.place, room);
                    room = leaf.place + gpu::room_of_run(size) + leaf.columns + std::max(leaf.rank, 0);
                    for (int k = 0; k < size; ++k) ++seen[leaf.first + k];
                }
                EXPECT_LE(room, numbers);
            }
            EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<std::int64_t>(seen.size()));
        }
        EXPECT_GT(joined, numbers > 64 ? 10 : -1) << numbers;
        EXPECT_GT(cut, numbers < gpu::kTileNumbers ? 100 : 0) << numbers;
    }
}

}  // namespace
}  // namespace penstock::hmatrix
