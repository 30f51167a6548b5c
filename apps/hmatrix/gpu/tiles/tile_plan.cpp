// Cuts large leaves into tiles, and joins small leaves.
#include "hmatrix/gpu/tiles/tile_plan.hpp"

#include <algorithm>
#include <limits>

namespace penstock::hmatrix::gpu {
namespace {

struct LeafInDoubles {
    std::int64_t row, column;
    std::int32_t rows, columns, rank;
    std::uint32_t first;

    std::int64_t numbers() const noexcept {
        return rank == kFull ? std::int64_t{rows} * columns : (std::int64_t{rows} + columns) * rank;
    }
    // Numbers of shared memory that the leaf takes in a joined tile. Even, because the next leaf begins after it.
    std::int64_t room() const noexcept {
        const std::int64_t factors = columns + std::int64_t{std::max(rank, 0)};
        return ((numbers() + 2) & ~std::int64_t{1}) + ((factors + 1) & ~std::int64_t{1}) + kTileLeafNumbers;
    }
};

LeafInDoubles entry_of(const LeafPlace& place, std::size_t number) {
    const LeafShape& shape = place.shape;
    const std::int64_t first = place.tier_offset[0] / static_cast<std::int64_t>(sizeof(double));
    if (first > std::numeric_limits<std::uint32_t>::max()) refuse_tiles(number, "lies too far into its batch");
    return {place.row, place.column, static_cast<std::int32_t>(shape.rows), static_cast<std::int32_t>(shape.columns),
            shape.low_rank ? std::int32_t{shape.counts[0][0]} : kFull, static_cast<std::uint32_t>(first)};
}

// The size of the parts of [0, all): as few parts as possible, of about equal size. Large parts are multiples of
// `together`, so that rows fill whole warps.
std::int32_t part_size(std::int32_t all, std::int32_t most, std::int32_t together) {
    if (most > together) most = most / together * together;
    const std::int32_t parts = (all + most - 1) / most;
    const std::int32_t even = ((all + parts - 1) / parts + together - 1) / together * together;
    return std::min({all, even, most});
}

class DoublesTiler {
  public:
    DoublesTiler(TilePlan& plan, const TileOptions& options) : plan_(plan), lists_(plan), most_(options.numbers) {}

    void add(const LeafInDoubles& leaf) {
        if (leaf.rank == 0) return;
        if (leaf.room() <= most_) return add_small(leaf);
        if (leaf.rank == kFull) return cut({leaf.row, leaf.column, leaf.first, leaf.rows, leaf.rows, leaf.columns,
                                            TileKind::dense, 0}, lists_.first);
        const std::int64_t t = plan_.t_numbers;
        plan_.t_numbers += leaf.rank;
        const std::uint32_t u = leaf.first + static_cast<std::uint32_t>(leaf.columns) * leaf.rank;
        cut({leaf.column, t, leaf.first, leaf.columns, leaf.columns, leaf.rank, TileKind::left, 0}, lists_.first);
        cut({leaf.row, t, u, leaf.rows, leaf.rows, leaf.rank, TileKind::right, 0}, lists_.right);
    }

    void finish() { lists_.finish(); }

  private:
    void add_small(const LeafInDoubles& leaf) {
        const auto room = static_cast<std::int32_t>(leaf.room());
        const bool joins = !lists_.joined.empty() && used_ + room <= most_ && leaf.rows <= kJoinedRows &&
                           lists_.joined.back().row == leaf.row && lists_.joined.back().rows == leaf.rows;
        if (!joins) {
            const std::int64_t first = static_cast<std::int64_t>(plan_.rows.size()) - lists_.first_row();
            lists_.joined.push_back(
                {leaf.row, 0, static_cast<std::uint32_t>(first), 0, leaf.rows, 0, TileKind::leaves, 0});
            used_ = 0;
        }
        // The numbers of the tile's earlier leaves move back, because the TileLeaf of the new leaf comes before them.
        const auto before = static_cast<std::size_t>(lists_.joined.back().columns++);
        const std::size_t begin = plan_.rows.size() - before;
        for (std::size_t i = begin; i < plan_.rows.size(); ++i) plan_.rows[i].place += kTileLeafNumbers;
        const std::int32_t place = used_ + kTileLeafNumbers;
        plan_.rows.push_back({leaf.column, leaf.first, leaf.columns, leaf.rank,
                              static_cast<std::int32_t>(leaf.numbers()), place, 0});
        used_ += room;
    }

    // Cuts a matrix whose columns are `whole.stride` numbers apart into parts that fit with their factor.
    void cut(const Tile& whole, std::vector<Tile>& to) const {
        constexpr std::int32_t kLanes = 32, kEnds = room_of_run(0);
        const std::int32_t columns = part_size(whole.columns, std::min(kTileColumns, most_ / 8), 1);
        const std::int32_t runs = most_ - kEnds * columns;
        const bool factor_by_row = whole.kind == TileKind::left;
        const std::int32_t rows =
            part_size(whole.rows, factor_by_row ? runs / (columns + 1) : (runs - columns) / columns, kLanes);
        for (std::int32_t row = 0; row < whole.rows; row += rows) {
            for (std::int32_t column = 0; column < whole.columns; column += columns) {
                Tile part = whole;
                part.row += row;
                part.column += column;
                part.first += static_cast<std::uint32_t>(column) * whole.stride + row;
                part.rows = std::min(rows, whole.rows - row);
                part.columns = std::min(columns, whole.columns - column);
                to.push_back(part);
            }
        }
    }

    TilePlan& plan_;
    BatchLists<TilePlan> lists_;
    std::int32_t most_;
    std::int32_t used_ = 0;  // part of the last joined tile's room that is taken
};

}  // namespace

TilePlan tile_plan(const MatrixFile& file, const TileOptions& options) {
    TilePlan made;
    each_batch_by_rows(file, entry_of, [&](const std::vector<LeafInDoubles>& entries) {
        DoublesTiler tiles(made, options);
        for (const LeafInDoubles& entry : entries) tiles.add(entry);
        tiles.finish();
    });
    return made;
}

}  // namespace penstock::hmatrix::gpu
