// See cell_plan.hpp.
#include "device/sort/cell_plan.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "penstock/error.hpp"

namespace penstock::device {

std::uint64_t count_of(const CellLanes& grid) noexcept { return grid.cells[0] * grid.cells[1] * grid.cells[2]; }

CellLanes lanes_of(const CellSort& sort) {
    constexpr std::uint64_t kMostCellsAlong = 4096, kMostCells = std::numeric_limits<std::int32_t>::max();
    constexpr std::uint64_t kMostSorted = std::numeric_limits<std::uint32_t>::max();
    const char* operation = "sort into cells";
    CellLanes grid{};
    for (int i = 0; i < 3; ++i) {
        grid.cells[i] = sort.cells[i];
        grid.widths[i] = sort.widths[i];
        if (grid.cells[i] != 0 && grid.cells[i] <= kMostCellsAlong && grid.widths[i] > 0) continue;
        throw Error(ErrorCode::invalid_argument, operation,
                    std::to_string(grid.cells[i]) + " cells along a dimension, each " + std::to_string(grid.widths[i]) +
                        " wide",
                    "give 1 to 4096 cells, and widths above 0");
    }
    if (count_of(grid) > kMostCells) {
        throw Error(ErrorCode::invalid_argument, operation, std::to_string(count_of(grid)) + " cells",
                    "give " + std::to_string(kMostCells) + " at most");
    }
    if (sort.order != nullptr && sort.particles > kMostSorted) {
        throw Error(ErrorCode::unsupported, operation, std::to_string(sort.particles) + " particles of one process",
                    "give " + std::to_string(kMostSorted) + " at most, or particles that lie sorted");
    }
    return grid;
}

std::vector<SortedCell> closed(const std::vector<OpenRun>& runs) {
    std::vector<SortedCell> all(runs.size());
    for (std::size_t cell = 0; cell < runs.size(); ++cell) {
        const OpenRun& open = runs[cell];
        all[cell] = {open.first, open.end - open.first, {}, {}};
        std::transform(open.least, open.least + 3, all[cell].least, number_of);
        std::transform(open.most, open.most + 3, all[cell].most, number_of);
    }
    return all;
}

}  // namespace penstock::device
