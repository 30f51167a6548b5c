// See cells.hpp.
#include "snapshot/cells.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "formats/faults.hpp"
#include "penstock/error.hpp"

namespace penstock::snapshot {
namespace {

Error refused_cells(std::string cause, std::string advice) {
    return {ErrorCode::invalid_argument, "add cells", std::move(cause), std::move(advice)};
}

// A grid that was checked.
class CellGrid {
  public:
    explicit CellGrid(const SnapshotCells& cells) : cells_(cells) {
        constexpr std::uint64_t kMostAlong = 4096;  // 2^36 cells have no tables that fit a machine
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
    }

    std::uint64_t count() const { return cells_.cells[0] * cells_.cells[1] * cells_.cells[2]; }
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

struct CellTable {
    std::vector<std::int64_t> counts{}, offsets{};
    std::vector<double> least{}, most{};
};

CellTable table_of(const CellGrid& grid, const SnapshotPositions& positions) {
    CellTable table;
    table.counts.resize(grid.count());
    table.offsets.resize(grid.count());
    table.least.assign(3 * grid.count(), std::numeric_limits<double>::max());  // as SWIFT has it of empty cells
    table.most.assign(3 * grid.count(), -std::numeric_limits<double>::max());
    const PositionReader reader(positions);
    std::uint64_t before = 0;
    for (std::uint64_t particle = 0; particle < positions.particles; ++particle) {
        const std::array<double, 3> at = reader[particle];
        const std::uint64_t cell = grid.cell_of(at);
        if (cell < before) {
            throw refused_cells("particle " + std::to_string(particle) + " of PartType" +
                                    std::to_string(positions.type) + " lies in cell " + std::to_string(cell) +
                                    ", and the one before it in cell " + std::to_string(before),
                                "put the particles of all datasets into the order of their cells first");
        }
        before = cell;
        ++table.counts[cell];
        for (std::size_t i = 0; i < 3; ++i) {
            table.least[3 * cell + i] = std::min(table.least[3 * cell + i], at[i]);
            table.most[3 * cell + i] = std::max(table.most[3 * cell + i], at[i]);
        }
    }
    for (std::size_t cell = 1; cell < table.counts.size(); ++cell)
        table.offsets[cell] = table.offsets[cell - 1] + table.counts[cell - 1];
    return table;
}

template <typename Number>
CellDatasets::Valued valued(std::string path, std::vector<std::uint64_t> shape, const std::vector<Number>& numbers) {
    const auto bytes = std::as_bytes(std::span(numbers));
    return {{"Cells/" + path, snapshot_dtype<Number>(), std::move(shape)}, {bytes.begin(), bytes.end()}};
}

}  // namespace

CellDatasets cell_datasets(const SnapshotCells& cells, std::span<const SnapshotPositions> types) {
    const CellGrid grid(cells);
    const std::uint64_t count = grid.count();
    CellDatasets made;
    std::vector<double> centres;
    for (std::uint64_t cell = 0; cell < count; ++cell)
        for (const double one : grid.centre(cell)) centres.push_back(one);
    made.datasets.push_back(valued("Centres", {count, 3}, centres));
    for (const SnapshotPositions& positions : types) {
        const CellTable table = table_of(grid, positions);
        const std::string name = "/PartType" + std::to_string(positions.type);
        made.datasets.push_back(valued("Counts" + name, {count}, table.counts));
        made.datasets.push_back(valued("OffsetsInFile" + name, {count}, table.offsets));
        made.datasets.push_back(valued("Files" + name, {count}, std::vector<std::int32_t>(count)));
        made.datasets.push_back(valued("MinPositions" + name, {count, 3}, table.least));
        made.datasets.push_back(valued("MaxPositions" + name, {count, 3}, table.most));
    }
    const std::array<double, 3> size{grid.width(0), grid.width(1), grid.width(2)};
    std::array<std::int32_t, 3> along{};
    std::copy(cells.cells.begin(), cells.cells.end(), along.begin());
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
        cell_of[i] = grid.cell_of(reader[i]);
        ++place[cell_of[i] + 1];
    }
    for (std::size_t cell = 1; cell < place.size(); ++cell) place[cell] += place[cell - 1];
    for (std::uint64_t i = 0; i < positions.particles; ++i) order[place[cell_of[i]]++] = i;
    return order;
}

}  // namespace penstock
