// See cells.hpp.
#include "snapshot/cells.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "formats/faults.hpp"
#include "penstock/error.hpp"
#include "snapshot/digest_sum.hpp"

namespace penstock::snapshot {
namespace {

Error refused_cells(std::string cause, std::string advice) {
    return {ErrorCode::invalid_argument, "add cells", std::move(cause), std::move(advice)};
}

// A grid that was checked.
class CellGrid {
  public:
    explicit CellGrid(const SnapshotCells& cells) : cells_(cells) {
        constexpr std::uint64_t kMostAlong = 4096;
        for (std::size_t i = 0; i < 3; ++i) {
            if (cells.cells[i] == 0 || cells.cells[i] > kMostAlong) {
                throw refused_cells("there are " + std::to_string(cells.cells[i]) + " cells along a dimension",
                                    "give 1 to 4096");
            }
            if (!std::isfinite(cells.box_size[i]) || cells.box_size[i] <= 0) {
                throw refused_cells("the box has a length of " + std::to_string(cells.box_size[i]),
                                    "give numbers above 0");
            }
        }
        constexpr std::uint64_t kMostCells = std::numeric_limits<std::int32_t>::max();  // nr_cells is such a number
        if (count() > kMostCells) {
            throw refused_cells("there are " + std::to_string(count()) + " cells",
                                "give " + std::to_string(kMostCells) + " at most");
        }
    }

    std::uint64_t count() const { return cells_.cells[0] * cells_.cells[1] * cells_.cells[2]; }
    const std::array<std::uint64_t, 3>& along() const { return cells_.cells; }
    double width(std::size_t dimension) const {
        return cells_.box_size[dimension] / static_cast<double>(cells_.cells[dimension]);
    }
    std::array<double, 3> centre(std::uint64_t cell) const {
        const auto& along = cells_.cells;
        const std::array<std::uint64_t, 3> at{cell / (along[1] * along[2]), cell / along[2] % along[1],
                                              cell % along[2]};
        return {(static_cast<double>(at[0]) + 0.5) * width(0), (static_cast<double>(at[1]) + 0.5) * width(1),
                (static_cast<double>(at[2]) + 0.5) * width(2)};
    }
    std::uint64_t cell_of(const std::array<double, 3>& position) const {
        std::uint64_t cell = 0;
        for (std::size_t i = 0; i < 3; ++i) {
            const double at = position[i] / width(i);
            const std::uint64_t last = cells_.cells[i] - 1;
            const std::uint64_t here = !(at > 0) ? 0 : static_cast<std::uint64_t>(std::min(at, double(last)));
            cell = cell * cells_.cells[i] + here;
        }
        return cell;
    }

  private:
    SnapshotCells cells_;
};

// Reads positions of either type. Throws Error of another one.
class PositionReader {
  public:
    explicit PositionReader(const SnapshotPositions& positions) : positions_(positions) {
        is_double_ = positions.dtype == "float64";
        if (!is_double_ && positions.dtype != "float32") {
            throw refused_cells("positions have the type " + formats::shown(positions.dtype),
                                "give float64 or float32");
        }
        if (positions.particles != 0 && positions.data == nullptr) {
            throw refused_cells("the positions are a null pointer", "give the first of them");
        }
    }
    bool is_double() const noexcept { return is_double_; }
    std::array<double, 3> operator[](std::uint64_t particle) const {
        std::array<double, 3> at{};
        for (std::size_t i = 0; i < 3; ++i) at[i] = number(3 * particle + i);
        return at;
    }

  private:
    double number(std::uint64_t i) const {
        if (is_double_) return static_cast<const double*>(positions_.data)[i];
        return static_cast<double>(static_cast<const float*>(positions_.data)[i]);
    }
    const SnapshotPositions& positions_;
    bool is_double_ = false;
};

constexpr double kLowest = -std::numeric_limits<double>::max();  // SWIFT has the bounds of empty cells from it

// Of all types or of one: what belongs to a cell lies together.
struct CellNumbers {
    std::span<const std::int64_t> totals;
    std::span<const double> extremes;

    std::int64_t count(std::size_t cell) const { return totals[kCellTotals * cell]; }
    std::int64_t offset(std::size_t cell) const { return totals[kCellTotals * cell + 1]; }
    double least(std::size_t cell, std::size_t dimension) const { return -extremes[kCellExtremes * cell + dimension]; }
    double most(std::size_t cell, std::size_t dimension) const {
        return extremes[kCellExtremes * cell + 3 + dimension];
    }
    double last_process(std::size_t cell) const { return extremes[kCellExtremes * cell + 6]; }
    double first_process(std::size_t cell) const { return -extremes[kCellExtremes * cell + 7]; }
    std::size_t process(std::size_t cell) const { return static_cast<std::size_t>(last_process(cell)); }
};

template <typename Numbers>
auto of_type(Numbers& all, std::size_t type, std::size_t types) {
    const std::size_t each = all.size() / types;
    return std::span(all).subspan(type * each, each);
}

std::string particles_of(std::uint32_t type) { return "particles of PartType" + std::to_string(type); }

// One that is NaN lies in no cell, and bounds of cells would not tell it. `of_type`: behind its number.
template <class OfType>
void check_place(const std::array<double, 3>& at, std::uint64_t particle, OfType&& of_type) {
    if (std::isfinite(at[0]) && std::isfinite(at[1]) && std::isfinite(at[2])) return;
    const std::string place =
        std::to_string(at[0]) + ", " + std::to_string(at[1]) + ", " + std::to_string(at[2]);
    throw refused_cells("particle " + std::to_string(particle) + of_type() + " lies at (" + place + ")",
                        "give finite positions");
}

struct OwnNumbers {
    std::span<std::int64_t> totals;
    std::span<double> extremes;
    double process = 0;
};

void check_found(const CellsFound& found, std::uint32_t type) {
    const std::string of_type = " of PartType" + std::to_string(type);
    if (found.first_bad != CellsFound::kNone) {
        const double* at = found.bad_position;
        check_place({at[0], at[1], at[2]}, found.first_bad, [&] { return of_type; });
    }
    if (found.first_unsorted == CellsFound::kNone) return;
    throw refused_cells("particle " + std::to_string(found.first_unsorted) + of_type + " lies in cell " +
                            std::to_string(found.cell) + ", and the one before it in cell " +
                            std::to_string(found.cell_before),
                        "put the particles of all datasets into the order of their cells first, or let sort_by_cells "
                        "do it");
}

void count_type(const CellGrid& grid, const SnapshotPositions& positions, const OwnNumbers& own,
                const FindCells& find) {
    const PositionReader reader(positions);  // which refuses positions that make no sense
    CellSort sort{positions.data, positions.particles, reader.is_double(), grid.along(), {}, nullptr};
    for (std::size_t i = 0; i < 3; ++i) sort.widths[i] = grid.width(i);
    const CellsFound found = find(positions.type, sort);
    check_found(found, positions.type);
    for (std::size_t cell = 0; cell < found.runs.size(); ++cell) {
        const SortedCell& run = found.runs[cell];
        if (run.count == 0) continue;
        const auto totals = own.totals.subspan(kCellTotals * cell, kCellTotals);
        const auto extremes = own.extremes.subspan(kCellExtremes * cell, kCellExtremes);
        totals[0] = static_cast<std::int64_t>(run.count);
        totals[1] = static_cast<std::int64_t>(run.first);
        extremes[6] = own.process;
        extremes[7] = -own.process;
        for (std::size_t i = 0; i < 3; ++i) {
            extremes[i] = -run.least[i];
            extremes[3 + i] = run.most[i];
        }
    }
}

void check_types(std::span<const SnapshotPositions> types) {
    std::set<std::uint32_t> seen;
    for (const SnapshotPositions& one : types) {
        if (seen.insert(one.type).second) continue;
        throw refused_cells("PartType" + std::to_string(one.type) + " is given twice",
                            "give the positions of each type once");
    }
}

// Each cell is of one process, and has rows that the process has; all cells have the rows of all processes.
void check_type(const CellNumbers& numbers, std::uint32_t type, const std::vector<std::uint64_t>& process_rows) {
    const std::string advice = "sum the totals of all processes, and take the greatest of their extremes";
    const auto is_process = [&](double one) { return one >= 0 && one < static_cast<double>(process_rows.size()); };
    const std::uint64_t rows = std::accumulate(process_rows.begin(), process_rows.end(), std::uint64_t{0});
    std::uint64_t found = 0;
    for (std::size_t cell = 0; kCellTotals * cell < numbers.totals.size(); ++cell) {
        const auto count = static_cast<std::uint64_t>(numbers.count(cell));
        if (count == 0) continue;
        const double first = numbers.first_process(cell), last = numbers.last_process(cell);
        if (is_process(first) && is_process(last) && first != last) {
            throw refused_cells("processes " + std::to_string(static_cast<std::uint64_t>(first)) + " and " +
                                    std::to_string(static_cast<std::uint64_t>(last)) + " both have " +
                                    particles_of(type) + " in cell " + std::to_string(cell),
                                "give all particles of a cell to one process, as SWIFT does");
        }
        const std::uint64_t own = is_process(last) && first == last ? process_rows[numbers.process(cell)] : 0;
        if (count > own || static_cast<std::uint64_t>(numbers.offset(cell)) > own - count) {
            throw refused_cells(
                "no process has the " + particles_of(type) + " that cell " + std::to_string(cell) + " is said to have",
                advice);
        }
        found += count;
    }
    if (found == rows) return;
    throw refused_cells("the cells have " + std::to_string(found) + " " + particles_of(type) + ", and all processes " +
                            std::to_string(rows),
                        advice);
}

// The tables of a type, as they are in the file.
struct CellTable {
    std::vector<std::int64_t> counts{}, offsets{};
    std::vector<std::int32_t> files{};
    std::vector<double> least{}, most{};

    void reserve(std::size_t cells) {
        for (auto* one : {&counts, &offsets}) one->reserve(cells);
        files.reserve(cells);
        for (auto* one : {&least, &most}) one->reserve(3 * cells);
    }
};

// A cell without particles lies where the one before it ends.
CellTable table_of(const CellNumbers& numbers, const std::vector<std::uint64_t>& process_rows, bool has_file_each) {
    CellTable table;
    table.reserve(numbers.totals.size() / kCellTotals);
    std::vector<std::int64_t> first(process_rows.size());
    if (!has_file_each) std::exclusive_scan(process_rows.begin(), process_rows.end(), first.begin(), std::int64_t{0});
    std::int64_t at = 0;
    std::int32_t file = 0;
    for (std::size_t cell = 0; kCellTotals * cell < numbers.totals.size(); ++cell) {
        if (numbers.count(cell) != 0) {
            at = first[numbers.process(cell)] + numbers.offset(cell);
            if (has_file_each) file = static_cast<std::int32_t>(numbers.process(cell));
        }
        table.counts.push_back(numbers.count(cell));
        table.offsets.push_back(at);
        table.files.push_back(file);
        at += numbers.count(cell);
        for (std::size_t i = 0; i < 3; ++i) {
            table.least.push_back(numbers.least(cell, i));
            table.most.push_back(numbers.most(cell, i));
        }
    }
    return table;
}

template <typename Number>
CellDatasets::Valued valued(std::string path, std::vector<std::uint64_t> shape, const std::vector<Number>& numbers) {
    const auto bytes = std::as_bytes(std::span(numbers));
    return {{"Cells/" + path, snapshot_dtype<Number>(), std::move(shape)}, {bytes.begin(), bytes.end()}};
}

}  // namespace

CellCounts count_cells(const SnapshotCells& cells, std::span<const SnapshotPositions> types, std::uint32_t process,
                       const FindCells& find) {
    const CellGrid grid(cells);
    check_types(types);
    CellCounts made{cells};
    made.totals.resize(types.size() * grid.count() * kCellTotals);
    made.extremes.assign(types.size() * grid.count() * kCellExtremes, kLowest);
    for (std::size_t i = 0; i < types.size(); ++i) {
        made.types.push_back(types[i].type);
        count_type(grid, types[i],
                   {of_type(made.totals, i, types.size()), of_type(made.extremes, i, types.size()), double(process)},
                   find);
    }
    return made;
}

std::uint64_t cell_digest(const CellCounts& counts) {
    DigestSum sum;
    sum.add(std::as_bytes(std::span(counts.cells.cells)));
    sum.add(std::as_bytes(std::span(counts.cells.box_size)));
    for (const std::uint32_t type : counts.types) sum.add(std::uint64_t{type});
    return sum.sum();
}

CellDatasets cell_datasets(const CellCounts& all, const CellRows& rows) {
    const CellGrid grid(all.cells);
    const std::uint64_t count = grid.count();
    CellDatasets made;
    std::vector<double> centres;
    centres.reserve(3 * count);
    for (std::uint64_t cell = 0; cell < count; ++cell)
        for (const double one : grid.centre(cell)) centres.push_back(one);
    made.datasets.push_back(valued("Centres", {count, 3}, centres));
    for (std::size_t i = 0; i < all.types.size(); ++i) {
        const CellNumbers numbers{of_type(all.totals, i, all.types.size()), of_type(all.extremes, i, all.types.size())};
        check_type(numbers, all.types[i], rows.process_rows[i]);
        const CellTable table = table_of(numbers, rows.process_rows[i], rows.has_file_each);
        const std::string name = "/PartType" + std::to_string(all.types[i]);
        made.datasets.push_back(valued("Counts" + name, {count}, table.counts));
        made.datasets.push_back(valued("OffsetsInFile" + name, {count}, table.offsets));
        made.datasets.push_back(valued("Files" + name, {count}, table.files));
        made.datasets.push_back(valued("MinPositions" + name, {count, 3}, table.least));
        made.datasets.push_back(valued("MaxPositions" + name, {count, 3}, table.most));
    }
    const std::array<double, 3> size{grid.width(0), grid.width(1), grid.width(2)};
    std::array<std::int32_t, 3> along{};
    std::copy(all.cells.cells.begin(), all.cells.cells.end(), along.begin());
    made.attributes.push_back(snapshot_array("nr_cells", {static_cast<std::int32_t>(count)}));
    made.attributes.push_back(snapshot_array("size", std::span<const double>(size)));
    made.attributes.push_back(snapshot_array("dimension", std::span<const std::int32_t>(along)));
    return made;
}

}  // namespace penstock::snapshot

namespace penstock {

std::vector<std::uint64_t> snapshot_cell_order(const SnapshotCells& cells, const SnapshotPositions& positions) {
    const snapshot::CellGrid grid(cells);
    const snapshot::PositionReader reader(positions);
    std::vector<std::uint64_t> cell_of(positions.particles), place(grid.count() + 1), order(positions.particles);
    for (std::uint64_t i = 0; i < positions.particles; ++i) {
        const std::array<double, 3> at = reader[i];
        snapshot::check_place(at, i, [] { return ""; });
        cell_of[i] = grid.cell_of(at);
        ++place[cell_of[i] + 1];
    }
    for (std::size_t cell = 1; cell < place.size(); ++cell) place[cell] += place[cell - 1];
    for (std::uint64_t i = 0; i < positions.particles; ++i) order[place[cell_of[i]]++] = i;
    return order;
}

}  // namespace penstock
