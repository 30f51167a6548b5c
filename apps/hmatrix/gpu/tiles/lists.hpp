// Shared by the plans of tiles (tile_plan.hpp, digit_plan.hpp): sorts the leaves of a batch by rows, and orders its
// tiles.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "hmatrix/file/reader.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix::gpu {

// Row is the type of a table's rows. A tile names rows relative to the first row of its batch.
template <class Tile, class Row>
struct TilePlanOf {
    struct Batch {
        std::int64_t first_row = 0;
        std::int64_t first_tile = 0;
        std::int64_t tiles = 0;        // tiles that need no finished t
        std::int64_t right_tiles = 0;  // the right tiles, which follow them
    };
    std::vector<Row> rows;
    std::vector<Tile> tiles;
    std::vector<Batch> batches;
    std::int64_t t_numbers = 0;  // numbers of t of all leaves that are cut
};

// The tiles of one batch while its plan is made.
template <class Plan>
class BatchLists {
  public:
    using Tile = typename decltype(Plan::tiles)::value_type;

    explicit BatchLists(Plan& plan) : plan_(plan) {
        batch_.first_row = static_cast<std::int64_t>(plan.rows.size());
        batch_.first_tile = static_cast<std::int64_t>(plan.tiles.size());
    }
    std::vector<Tile> first;   // parts of large leaves, which take longest
    std::vector<Tile> joined;  // small leaves
    std::vector<Tile> right;

    std::int64_t first_row() const noexcept { return batch_.first_row; }
    void finish() {
        batch_.tiles = static_cast<std::int64_t>(first.size() + joined.size());
        batch_.right_tiles = static_cast<std::int64_t>(right.size());
        for (const std::vector<Tile>* part : {&first, &joined, &right}) {
            plan_.tiles.insert(plan_.tiles.end(), part->begin(), part->end());
        }
        plan_.batches.push_back(batch_);
    }

  private:
    Plan& plan_;
    typename Plan::Batch batch_;
};

[[noreturn]] inline void refuse_tiles(std::size_t leaf, const std::string& cause) {
    throw Error(ErrorCode::unsupported, "prepare products on the GPU", "leaf " + std::to_string(leaf) + " " + cause,
                "multiply on the device host");
}

// For each batch, calls use(entries) with an entry for each of its leaves, sorted so that leaves of the same rows are
// neighbours. `entry_of(place, number)` makes the entry of a leaf; an entry has the members row and rows.
template <class EntryOf, class Use>
void each_batch_by_rows(const MatrixFile& file, const EntryOf& entry_of, const Use& use) {
    const std::vector<LeafPlace>& leaves = file.tables().leaves;
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    for (const BatchRecord& record : file.tables().batches) {
        std::vector<decltype(entry_of(leaves[0], 0))> entries;
        entries.reserve(record.leaves);
        for (std::int64_t i = record.first_leaf; i < record.first_leaf + record.leaves; ++i) {
            const LeafShape& shape = leaves[i].shape;
            if (shape.rows > kMost || shape.columns > kMost) refuse_tiles(i, "has more than 2^31 rows or columns");
            entries.push_back(entry_of(leaves[i], i));
        }
        std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
            return std::tuple(a.row, a.rows) < std::tuple(b.row, b.rows);
        });
        use(entries);
    }
}

}  // namespace penstock::hmatrix::gpu
