// The product of a tile with a vector, computed by a team of one warp. Host and GPU compile this one source.
//
// The team first copies everything that a tile reads to shared memory, with all copies under way at once. For a result
// by rows, each lane has its own rows. For a result by columns, the lanes share each column and add their sums.
#pragma once

#include "hmatrix/gpu/team.hpp"
#include "hmatrix/gpu/tiles/tile.hpp"

namespace penstock::hmatrix::gpu {

template <class Team>
class TileTeam {
  public:
    // Requires: `shared` has room for kTileNumbers numbers.
    PENSTOCK_BOTH TileTeam(Team team, const TileBatch& batch, double* shared)
        : team_(team), batch_(batch), shared_(shared) {}

    PENSTOCK_BOTH void run(const Tile& tile, const TileVectors<double>& vectors) {
        if (tile.kind == TileKind::leaves) {
            run_leaves(tile, vectors);
        } else {
            run_part(tile, vectors);
        }
    }

  private:
    PENSTOCK_BOTH void copy(int place, const double* from, int count) {
        for (int i = team_.lane(); i < count; i += team_.lanes()) team_.copy(shared_ + place + i, from + i);
    }

    PENSTOCK_BOTH void run_part(const Tile& tile, const TileVectors<double>& vectors) {
        const bool left = tile.kind == TileKind::left;
        const int pitch = room_of_run(tile.rows), size = pitch * tile.columns;
        const unsigned skew = tile.first & 1, turn = tile.stride & 1;
        team_.bring(tile.columns, [&](int j) {
            const std::uint32_t first = tile.first + static_cast<std::uint32_t>(j) * tile.stride;
            return Run<double>{shared_ + j * pitch + (first & 1), batch_.numbers + first, tile.rows};
        });
        const double* const factor = left ? vectors.x + tile.row
                                          : (tile.kind == TileKind::right ? vectors.t : vectors.x) + tile.column;
        copy(size, factor, left ? tile.rows : tile.columns);
        team_.arrived();
        const SharedBlock block{shared_ + skew, shared_ + pitch + (skew ^ turn), 2 * pitch, tile.rows, tile.columns};
        if (left) {
            double* const t = vectors.t + tile.column;
            dots(block, shared_ + size, [&](int j, double dot) { team_.add(t + j, dot); });
        } else {
            for (int row = team_.lane(); row < tile.rows; row += team_.lanes()) {
                team_.add(vectors.y + tile.row + row, row_of(block, shared_ + size, row));
            }
        }
    }

    PENSTOCK_BOTH void run_leaves(const Tile& tile, const TileVectors<double>& vectors) {
        const int rows = tile.rows;
        auto* const leaves = reinterpret_cast<TileLeaf*>(shared_);
        for (int i = team_.lane(); i < tile.columns; i += team_.lanes()) leaves[i] = batch_.leaves[tile.first + i];
        team_.sync();
        team_.bring(tile.columns, [&](int i) {
            const TileLeaf& leaf = leaves[i];
            return Run<double>{numbers_of(leaf), batch_.numbers + leaf.first, leaf.size};
        });
        for (int i = 0; i < tile.columns; ++i) copy(x_of(leaves[i]), vectors.x + leaves[i].column, leaves[i].columns);
        team_.arrived();
        for (int i = 0; i < tile.columns; ++i) {
            const TileLeaf leaf = leaves[i];
            if (leaf.rank == kFull) continue;
            double* const x = shared_ + x_of(leaf);
            double* const t = x + leaf.columns;
            dots(without_gaps(numbers_of(leaf), leaf.columns, leaf.rank), x, [&](int j, double dot) { t[j] = dot; });
        }
        team_.sync();
        for (int row = team_.lane(); row < rows; row += team_.lanes()) {
            double sum = 0;
            for (int i = 0; i < tile.columns; ++i) {
                const TileLeaf leaf = leaves[i];
                const bool dense = leaf.rank == kFull;
                const double* const numbers = numbers_of(leaf) + (dense ? 0 : leaf.columns * leaf.rank);
                const double* const x = shared_ + x_of(leaf) + (dense ? 0 : leaf.columns);
                sum += row_of(without_gaps(numbers, rows, dense ? leaf.columns : leaf.rank), x, row);
            }
            team_.add(vectors.y + tile.row + row, sum);
        }
    }

    PENSTOCK_BOTH double* numbers_of(const TileLeaf& leaf) const { return shared_ + leaf.place + (leaf.first & 1); }
    PENSTOCK_BOTH static int x_of(const TileLeaf& leaf) { return leaf.place + room_of_run(leaf.size); }

    struct SharedBlock {           // column-major; even and odd columns may have different offsets within 16 bytes
        const double* even;  // column 0
        const double* odd;   // column 1
        int step;            // from a column to the next but one, in numbers
        int rows;
        int columns;
    };
    PENSTOCK_BOTH static SharedBlock without_gaps(const double* numbers, int rows, int columns) {
        return {numbers, numbers + rows, 2 * rows, rows, columns};
    }

    PENSTOCK_BOTH static double row_of(const SharedBlock& block, const double* x, int row) {
        double sums[4] = {};
        const double* even = block.even + row;
        const double* odd = block.odd + row;
        int j = 0;
        for (; j + 4 <= block.columns; j += 4, even += 2 * block.step, odd += 2 * block.step) {
            sums[0] += even[0] * x[j];
            sums[1] += odd[0] * x[j + 1];
            sums[2] += even[block.step] * x[j + 2];
            sums[3] += odd[block.step] * x[j + 3];
        }
        const int left = block.columns - j;
        if (left > 0) sums[0] += even[0] * x[j];
        if (left > 1) sums[1] += odd[0] * x[j + 1];
        if (left > 2) sums[2] += even[block.step] * x[j + 2];
        return (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }

    // Calls use(j, column j . x) for each column, on one lane each.
    template <class Use>
    PENSTOCK_BOTH void dots(const SharedBlock& block, const double* x, const Use& use) {
        constexpr int kTogether = 4;
        const double* even = block.even;
        const double* odd = block.odd;
        for (int j = 0; j < block.columns; j += kTogether, even += 2 * block.step, odd += 2 * block.step) {
            // Missing columns at the end are read as copies of other columns, and their sums are dropped.
            const int left = block.columns - j;
            const double* const second = left > 1 ? odd : even;
            const double* const third = left > 2 ? even + block.step : even;
            const double* const fourth = left > 3 ? odd + block.step : even;
            double sums[kTogether] = {};
            for (int row = team_.lane(); row < block.rows; row += team_.lanes()) {
                sums[0] += even[row] * x[row];
                sums[1] += second[row] * x[row];
                sums[2] += third[row] * x[row];
                sums[3] += fourth[row] * x[row];
            }
            team_.sum_four(sums, [&](int i, double sum) {
                if (j + i < block.columns) use(j + i, sum);
            });
        }
    }

    Team team_;
    const TileBatch& batch_;
    double* shared_;
};

// Requires: `shared` is aligned to 16 bytes.
template <class Team>
PENSTOCK_BOTH TileTeam<Team> tile_team(Team team, const TileBatch& batch, std::uint64_t* shared) {
    return TileTeam<Team>(team, batch, reinterpret_cast<double*>(shared));
}

}  // namespace penstock::hmatrix::gpu
