// The group Cells of a snapshot of SWIFT: what each process counts of its particles, and the datasets of what all have
// counted together. The caller chooses whether the CPU or a device reads the positions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "penstock/snapshot.hpp"
#include "penstock/sort/cell_sort.hpp"

namespace penstock::snapshot {

// What a process counted. The sums of all totals and the greatest of all extremes are what several processes counted
// together: a cell of one process keeps its numbers by that.
struct CellCounts {
    SnapshotCells cells{};
    std::vector<std::uint32_t> types{};
    // Of each type, of each cell: its particles, and the row of the first of them among those of its process.
    std::vector<std::int64_t> totals{};
    // Of each type, of each cell: the least position (three numbers) with the other sign, the greatest one, the
    // process, and the process with the other sign. All are the lowest number where the cell has no particles.
    std::vector<double> extremes{};
};
constexpr std::size_t kCellTotals = 2, kCellExtremes = 8;

// Finds the cells of the particles of one type. What it sorts needs not lie sorted.
using FindCells = std::function<CellsFound(std::uint32_t type, const CellSort& sort)>;

// Throws Error{invalid_argument}, also where `find` sorts nothing and the particles of a type do not lie sorted.
CellCounts count_cells(const SnapshotCells& cells, std::span<const SnapshotPositions> types, std::uint32_t process,
                       const FindCells& find);
// Counts with the same grid and types have the same number.
std::uint64_t cell_digest(const CellCounts& counts);

// Where the particles lie.
struct CellRows {
    std::vector<std::vector<std::uint64_t>> process_rows{};  // of each type, of each process
    bool has_file_each = false;  // offsets begin in the file of the process; else behind the rows of those before it
};

struct CellDatasets {
    struct Valued {
        SnapshotDataset dataset;
        std::vector<std::byte> bytes;
    };
    std::vector<Valued> datasets{};
    std::vector<SnapshotAttribute> attributes{};  // of Cells/Meta-data
};

// `all`: what all processes counted. Throws Error{invalid_argument} where two of them have particles of one cell: its
// rows would not lie together.
CellDatasets cell_datasets(const CellCounts& all, const CellRows& rows);

}  // namespace penstock::snapshot
